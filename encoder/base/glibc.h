/*
 * What glibc keeps inside its locks, streams, threads and blocks of memory, where no interface
 * tells it. Each part names the file of glibc where it stands; it was read there from 2.31 to the
 * sources after 2.42, of January 2026. test/unit/glibc.c checks each against the libc that runs;
 * test_dist.py has it run with 2.31, 2.36 and 2.41.
 *
 * Readers write nothing and take no lock, so their answer may be out of date at once. They read a
 * lock in use, or a copy of one. Any context. A program with another libc is refused (target.c).
 */
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

static inline uint32_t gt_glibc_load(const void *word)
{
    return __atomic_load_n((const uint32_t *)word, __ATOMIC_RELAXED);
}

/* The version of the libc that runs: 36 of 2.36. */
int gt_glibc_minor(void);

/* Mutexes: sysdeps/nptl/pthreadP.h, lowlevellock.h ------------------------------------------- */

/*
 * __kind: the type, and flags. With one of the first three flags the lock word is not one of
 * lll_lock. The last two bits, of lock elision, are gone since 2.43.
 */
enum {
    GT_MUTEX_TYPE = 3, /* PTHREAD_MUTEX_RECURSIVE and so on */
    GT_MUTEX_ROBUST = 0x10,
    GT_MUTEX_PRIO_INHERIT = 0x20,
    GT_MUTEX_PRIO_PROTECT = 0x40,
    GT_MUTEX_UNUSUAL = GT_MUTEX_ROBUST | GT_MUTEX_PRIO_INHERIT | GT_MUTEX_PRIO_PROTECT,
    GT_MUTEX_SHARED = 0x80, /* also each robust one has it */
    GT_MUTEX_ALL = 0x3ff,
};

/* The word of lll_lock. A waiter sets it to 2 before it sleeps, and when it gets the lock. */
enum { GT_LLL_HELD = 1, GT_LLL_AWAITED = 2 };

enum { GT_MUTEX_AT_KIND = offsetof(pthread_mutex_t, __data.__kind) };

static inline uint32_t gt_glibc_mutex_kind(const pthread_mutex_t *mutex)
{
    return (uint32_t)mutex->__data.__kind;
}

static inline int gt_glibc_mutex_type(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind & GT_MUTEX_TYPE;
}

static inline bool gt_glibc_mutex_is_shared(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind & GT_MUTEX_SHARED;
}

/* How often the owner of a recursive mutex has it. */
static inline uint32_t gt_glibc_mutex_count(const pthread_mutex_t *mutex)
{
    return mutex->__data.__count;
}

static inline uint32_t *gt_glibc_mutex_word(const pthread_mutex_t *mutex)
{
    return (uint32_t *)&mutex->__data.__lock;
}

/*
 * The TID of the owner, as numbered in its PID namespace. The kernel defines the word of robust
 * mutexes and of those that inherit priority: it names the owner. 0: the mutex is free, or its new
 * owner writes its number a few instructions later.
 */
static inline uint32_t gt_glibc_mutex_owner(const pthread_mutex_t *mutex)
{
    uint32_t word = gt_glibc_load(gt_glibc_mutex_word(mutex));
    if (mutex->__data.__kind & (GT_MUTEX_ROBUST | GT_MUTEX_PRIO_INHERIT))
        return word & FUTEX_TID_MASK;
    return word ? gt_glibc_load(&mutex->__data.__owner) : 0;
}

/* Whether the mutex is held and no thread sleeps for it; false if its word does not say so. */
static inline bool gt_glibc_mutex_is_held_alone(const pthread_mutex_t *mutex)
{
    return !(mutex->__data.__kind & GT_MUTEX_UNUSUAL) &&
           gt_glibc_load(gt_glibc_mutex_word(mutex)) == GT_LLL_HELD;
}

/* Whether a thread may sleep for the mutex. */
static inline bool gt_glibc_mutex_is_awaited(const pthread_mutex_t *mutex)
{
    uint32_t word = gt_glibc_load(gt_glibc_mutex_word(mutex));
    return word == GT_LLL_AWAITED || word & FUTEX_WAITERS;
}

/* Read-write locks: nptl/pthread_rwlock_common.c ---------------------------------------------- */

enum {
    GT_RWLOCK_WRITE_PHASE = 1, /* bits of __readers, whose rest is the number of readers */
    GT_RWLOCK_WRITER = 2,
    GT_RWLOCK_READERS_WAIT = 4,
    GT_RWLOCK_READER_SHIFT = 3,
    GT_RWLOCK_FUTEX_USED = 2, /* a bit of __wrphase_futex and __writers_futex */
    GT_RWLOCK_FUTEX_MOST = 3, /* the largest value of these two */
};

/* Where threads wait. */
enum {
    GT_RWLOCK_AT_PHASE = offsetof(pthread_rwlock_t, __data.__wrphase_futex),
    GT_RWLOCK_AT_WRITERS = offsetof(pthread_rwlock_t, __data.__writers_futex),
    GT_RWLOCK_AT_READERS = offsetof(pthread_rwlock_t, __data.__readers),
};

/* Whether the first two of these words have values that they can have. */
static inline bool gt_glibc_rwlock_is_sound(const pthread_rwlock_t *lock)
{
    return lock->__data.__wrphase_futex <= GT_RWLOCK_FUTEX_MOST &&
           lock->__data.__writers_futex <= GT_RWLOCK_FUTEX_MOST;
}

static inline bool gt_glibc_rwlock_is_shared(const pthread_rwlock_t *lock)
{
    return lock->__data.__shared;
}

/* Whether a writer's unlock lets readers in first, as by default. */
static inline bool gt_glibc_rwlock_prefers_readers(const pthread_rwlock_t *lock)
{
    return lock->__data.__flags == PTHREAD_RWLOCK_PREFER_READER_NP;
}

static inline uint32_t gt_glibc_rwlock_writer(const pthread_rwlock_t *lock)
{
    return gt_glibc_load(&lock->__data.__cur_writer);
}

static inline uint32_t gt_glibc_rwlock_readers(const pthread_rwlock_t *lock)
{
    return gt_glibc_load(&lock->__data.__readers) >> GT_RWLOCK_READER_SHIFT;
}

/*
 * Whether the unlock that the caller is about to make lets another thread in. In the write phase
 * the caller is a writer, else a reader. The top bit of __writers is a flag of the locks that
 * prefer writers.
 */
static inline bool gt_glibc_rwlock_is_awaited(const pthread_rwlock_t *lock)
{
    uint32_t flags = gt_glibc_load(&lock->__data.__readers);
    uint32_t readers = flags >> GT_RWLOCK_READER_SHIFT;
    uint32_t writers = gt_glibc_load(&lock->__data.__writers);
    uint32_t futex = gt_glibc_load(&lock->__data.__writers_futex);
    if (flags & GT_RWLOCK_WRITE_PHASE)
        return readers || flags & GT_RWLOCK_READERS_WAIT || writers << 1 ||
               futex & GT_RWLOCK_FUTEX_USED;
    return readers == 1 && flags & GT_RWLOCK_WRITER;
}

/* Condition variables: nptl/pthread_cond_common.c --------------------------------------------- */

/* __wrefs: flags, and the number of waiters. */
enum { GT_COND_SHARED = 1, GT_COND_MONOTONIC = 2, GT_COND_WAITERS_SHIFT = 3 };

/*
 * Where __wrefs is, and the two words of __g_signals; a waiter waits for one of the two words.
 * First the layout from 2.25 on, then the one since 2.41.
 */
static const struct {
    uint8_t flags, signals;
} gt_glibc_cond_layouts[] = {{36, 40}, {28, 32}};

/*
 * Where __wrefs is in the libc that runs, which may be newer than the one whose headers built us.
 * Until gt_glibc_init, it is where these headers have it.
 */
extern uint32_t gt_glibc_cond_flags_at;
void gt_glibc_init(void);

static inline uint32_t gt_glibc_cond_flags(const pthread_cond_t *cond)
{
    return gt_glibc_load((const char *)cond + gt_glibc_cond_flags_at);
}

/* Semaphores and barriers: sysdeps/nptl/internaltypes.h --------------------------------------- */

/* sem_t, on machines that change 64 bits at once. */
struct gt_sem {
    uint64_t tokens_and_waiters; /* the waiters from bit 32 on */
    uint32_t shared;
} __attribute__((may_alias));

static inline bool gt_glibc_sem_is_awaited(const struct gt_sem *sem)
{
    return __atomic_load_n(&sem->tokens_and_waiters, __ATOMIC_RELAXED) >> 32;
}

/* pthread_barrier_t. Its waiters wait for `round` to change. */
struct gt_barrier {
    uint32_t come, round; /* threads that ever arrived; those of complete rounds */
    uint32_t count, shared;
} __attribute__((may_alias));

/* Whether the next thread to arrive is the last of its round. */
static inline bool gt_glibc_barrier_lacks_one(const struct gt_barrier *barrier)
{
    return gt_glibc_load(&barrier->come) + 1 - gt_glibc_load(&barrier->round) == barrier->count;
}

/* pthread_once_t and once_flag: nptl/pthread_once.c ------------------------------------------- */

enum { GT_ONCE_RUNNING = 1, GT_ONCE_DONE = 2 };

/* stdio: sysdeps/nptl/stdio-lock.h, libio/libio.h --------------------------------------------- */

/* _IO_lock_t. The count of a lock that its owner took once is 1; 0 since 2.37. */
struct gt_stdio_lock {
    uint32_t word; /* of lll_lock */
    int32_t count;
    uint64_t owner; /* address of the owner's struct pthread */
};

/* Flags of a FILE: _IO_UNBUFFERED, _IO_LINE_BUF. */
enum { GT_STDIO_UNBUFFERED = 0x2, GT_STDIO_BY_LINE = 0x200 };

/* The beginning of struct _IO_wide_data, in every version since 2.2. */
struct gt_stdio_wide {
    wchar_t *read_ptr, *read_end, *read_base, *write_base, *write_ptr, *write_end;
};

/* Threads: nptl/descr.h, sysdeps/x86_64/nptl/tls.h -------------------------------------------- */

/*
 * A thread's struct pthread: a pthread_t is its address. On x86-64 it begins with a tcbhead_t,
 * whose `tcb` is part of the ABI.
 */
struct gt_tcb_head {
    uint64_t tcb, dtv, self; /* the first and the last are its own address */
};

enum {
    GT_TCB_ALIGNED = 64,
    GT_TCB_HAS_ID = 1024,  /* the thread's TID is within so many bytes */
    GT_TCB_STATE = 856,    /* so far behind the TID is the word that joiners wait for, since 2.43 */
    GT_TCB_STATE_MOST = 8, /* its largest value. Until 2.42 joiners wait for the TID itself */
};

/* malloc: malloc/malloc.c, since 1996 --------------------------------------------------------- */

/* Flags in the word before a block, whose rest is the block's size with that word. */
enum { GT_HEAP_HEADER_MMAPPED = 2, GT_HEAP_HEADER_FLAGS = 7 };
