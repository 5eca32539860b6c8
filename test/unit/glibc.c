/*
 * What glibc keeps inside (encoder/base/glibc.h), against the libc that runs: a lock that this
 * thread has just taken names this thread, and a waiter sleeps where the layout says. The kernel
 * tells in which futex a thread sleeps (/proc/self/task/TID/syscall).
 */
#include "encoder/base/glibc.h"

#include "check.h"

#include "encoder/base/arch/arch.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static int minor;

/* A thread that waits ------------------------------------------------------------------------- */

struct waiter {
    void (*wait)(void *lock);
    void *lock;
    pthread_t thread;
    _Atomic uint32_t tid;
};

static void *run(void *arg)
{
    struct waiter *w = arg;
    atomic_store(&w->tid, (uint32_t)syscall(SYS_gettid));
    w->wait(w->lock);
    return NULL;
}

enum { FUTEX = SYS_futex, FUTEX_OF_HOST = 202 }; /* of x86-64, which may emulate this machine */

/* The address of the futex in which the thread sleeps; 0: it does not sleep in one. */
static uintptr_t futex_now(uint32_t tid)
{
    char path[64];
    long call = -1;
    unsigned long at = 0;
    snprintf(path, sizeof path, "/proc/self/task/%u/syscall", tid);
    FILE *file = fopen(path, "re");
    CHECK(file, "%s", path);
    int n = fscanf(file, "%ld %lx", &call, &at);
    fclose(file);
    return n == 2 && (call == FUTEX || call == FUTEX_OF_HOST) ? at : 0;
}

/* Starts a thread that waits, and returns how far into the lock the futex is in which it sleeps. */
static size_t sleeps_at(struct waiter *w, void (*wait)(void *), void *lock)
{
    uintptr_t at;
    *w = (struct waiter){wait, lock};
    CHECK(pthread_create(&w->thread, NULL, run, w) == 0);
    while (!atomic_load(&w->tid) || !(at = futex_now(w->tid)))
        sched_yield();
    return at - (uintptr_t)lock;
}

static void ends(struct waiter *w)
{
    CHECK(pthread_join(w->thread, NULL) == 0);
}

static uint32_t self(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/* Mutexes ------------------------------------------------------------------------------------- */

static void lock_and_unlock(void *mutex)
{
    CHECK(pthread_mutex_lock(mutex) == 0);
    CHECK(pthread_mutex_unlock(mutex) == 0);
}

struct kind {
    int type, robust, protocol, shared;
};

static void init(pthread_mutex_t *mutex, struct kind k)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, k.type);
    pthread_mutexattr_setrobust(&attr, k.robust);
    pthread_mutexattr_setprotocol(&attr, k.protocol);
    pthread_mutexattr_setpshared(&attr, k.shared);
    CHECK(pthread_mutex_init(mutex, &attr) == 0);
    uint32_t kind = gt_glibc_mutex_kind(mutex);
    CHECK_EQ(gt_glibc_mutex_type(mutex), k.type);
    CHECK_EQ(!!(kind & GT_MUTEX_ROBUST), k.robust);
    CHECK_EQ(!!(kind & GT_MUTEX_PRIO_INHERIT), k.protocol == PTHREAD_PRIO_INHERIT);
    CHECK_EQ(!!(kind & GT_MUTEX_PRIO_PROTECT), k.protocol == PTHREAD_PRIO_PROTECT);
    CHECK_EQ(gt_glibc_mutex_is_shared(mutex), k.shared | k.robust);
    CHECK_EQ(kind & ~GT_MUTEX_ALL, 0);
}

/* usual: the word is one of lll_lock. */
static void test_mutex(struct kind k)
{
    pthread_mutex_t m;
    struct waiter w;
    bool usual = !k.robust && k.protocol == PTHREAD_PRIO_NONE;
    init(&m, k);
    CHECK_EQ(gt_glibc_mutex_owner(&m), 0);
    CHECK_EQ(gt_glibc_mutex_is_held_alone(&m), false);
    pthread_mutex_lock(&m);
    CHECK_EQ(gt_glibc_mutex_owner(&m), self());
    CHECK_EQ(gt_glibc_mutex_is_held_alone(&m), usual);
    CHECK_EQ(gt_glibc_mutex_is_awaited(&m), false);
    CHECK_EQ(sleeps_at(&w, lock_and_unlock, &m),
             (uintptr_t)gt_glibc_mutex_word(&m) - (uintptr_t)&m);
    CHECK_EQ(gt_glibc_mutex_owner(&m), self());
    CHECK_EQ(gt_glibc_mutex_is_held_alone(&m), false);
    CHECK_EQ(gt_glibc_mutex_is_awaited(&m), true);
    CHECK_EQ(usual, *gt_glibc_mutex_word(&m) == GT_LLL_AWAITED);
    pthread_mutex_unlock(&m);
    ends(&w);
    CHECK_EQ(gt_glibc_mutex_owner(&m), 0);
    CHECK_EQ(gt_glibc_mutex_is_awaited(&m), false);
}

static void test_mutexes(void)
{
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutex_t m;
    for (int i = 0; i < 32; i++)
        test_mutex((struct kind){types[i % 4], i / 4 % 2,
                                 i / 8 % 2 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE, i / 16});
    for (int i = 0; i < 4; i++) /* only real-time threads may lock it */
        init(&m, (struct kind){types[i], .protocol = PTHREAD_PRIO_PROTECT});
}

static void test_recursive(void)
{
    pthread_mutex_t m;
    init(&m, (struct kind){PTHREAD_MUTEX_RECURSIVE});
    for (uint32_t n = 1; n <= 3; n++) {
        pthread_mutex_lock(&m);
        CHECK_EQ(gt_glibc_mutex_count(&m), n);
        CHECK_EQ(gt_glibc_mutex_owner(&m), self());
    }
}

/* Read-write locks ---------------------------------------------------------------------------- */

static void read_and_unlock(void *lock)
{
    pthread_rwlock_rdlock(lock);
    pthread_rwlock_unlock(lock);
}

static void write_and_unlock(void *lock)
{
    pthread_rwlock_wrlock(lock);
    pthread_rwlock_unlock(lock);
}

static uint32_t word_at(const pthread_rwlock_t *lock, size_t offset)
{
    return gt_glibc_load((const char *)lock + offset);
}

/* A writer holds the lock; a reader and a writer wait. */
static void test_writer(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct waiter w, v;
    CHECK(gt_glibc_rwlock_prefers_readers(&lock) && !gt_glibc_rwlock_is_shared(&lock));
    CHECK_EQ(gt_glibc_rwlock_writer(&lock), 0);
    pthread_rwlock_wrlock(&lock);
    CHECK_EQ(gt_glibc_rwlock_writer(&lock), self());
    CHECK_EQ(gt_glibc_rwlock_readers(&lock), 0);
    CHECK_EQ(gt_glibc_rwlock_is_awaited(&lock), false);
    CHECK_EQ(sleeps_at(&w, write_and_unlock, &lock), GT_RWLOCK_AT_WRITERS);
    CHECK_EQ(gt_glibc_rwlock_is_awaited(&lock), true);
    CHECK(word_at(&lock, GT_RWLOCK_AT_WRITERS) & GT_RWLOCK_FUTEX_USED);
    CHECK(gt_glibc_rwlock_is_sound(&lock));
    pthread_rwlock_unlock(&lock);
    ends(&w);
    pthread_rwlock_wrlock(&lock);
    CHECK_EQ(sleeps_at(&v, read_and_unlock, &lock), GT_RWLOCK_AT_PHASE);
    CHECK_EQ(gt_glibc_rwlock_is_awaited(&lock), true);
    CHECK(word_at(&lock, GT_RWLOCK_AT_PHASE) & GT_RWLOCK_FUTEX_USED);
    CHECK(gt_glibc_rwlock_is_sound(&lock));
    pthread_rwlock_unlock(&lock);
    ends(&v);
    CHECK_EQ(gt_glibc_rwlock_writer(&lock), 0);
}

/* Only the last of several readers lets a writer in. */
static void test_readers(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    struct waiter w;
    for (uint32_t n = 1; n <= 3; n++) {
        pthread_rwlock_rdlock(&lock);
        CHECK_EQ(gt_glibc_rwlock_readers(&lock), n);
        CHECK_EQ(gt_glibc_rwlock_is_awaited(&lock), false);
    }
    CHECK_EQ(gt_glibc_rwlock_writer(&lock), 0);
    CHECK_EQ(sleeps_at(&w, write_and_unlock, &lock), GT_RWLOCK_AT_PHASE);
    for (uint32_t n = 3; n; n--) {
        CHECK_EQ(gt_glibc_rwlock_is_awaited(&lock), n == 1);
        pthread_rwlock_unlock(&lock);
    }
    ends(&w);
    CHECK_EQ(gt_glibc_rwlock_readers(&lock), 0);
}

/* Where writers go first, a reader waits for the number of readers to change. */
static void test_writers_first(void)
{
    pthread_rwlock_t lock;
    pthread_rwlockattr_t attr;
    struct waiter w, r;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&lock, &attr);
    CHECK(gt_glibc_rwlock_is_shared(&lock));
    CHECK(!gt_glibc_rwlock_prefers_readers(&lock));
    pthread_rwlock_rdlock(&lock);
    CHECK_EQ(sleeps_at(&w, write_and_unlock, &lock), GT_RWLOCK_AT_PHASE);
    CHECK_EQ(sleeps_at(&r, read_and_unlock, &lock), GT_RWLOCK_AT_READERS);
    CHECK(word_at(&lock, GT_RWLOCK_AT_READERS) > GT_RWLOCK_FUTEX_MOST);
    CHECK_EQ(gt_glibc_rwlock_is_awaited(&lock), true);
    pthread_rwlock_unlock(&lock);
    ends(&w);
    ends(&r);
}

/* Condition variables ------------------------------------------------------------------------- */

static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_over;

static void wait_until_over(void *cond)
{
    pthread_mutex_lock(&cond_mutex);
    while (!is_over)
        pthread_cond_wait(cond, &cond_mutex);
    pthread_mutex_unlock(&cond_mutex);
}

static void test_cond(bool shared, bool monotonic)
{
    pthread_cond_t cond;
    pthread_condattr_t attr;
    struct waiter w[2];
    uint32_t flags = (shared ? GT_COND_SHARED : 0) | (monotonic ? GT_COND_MONOTONIC : 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, shared);
    pthread_condattr_setclock(&attr, monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME);
    pthread_cond_init(&cond, &attr);
    CHECK_EQ(gt_glibc_cond_flags(&cond), flags);
    is_over = false;
    for (uint32_t n = 1; n <= 2; n++) {
        size_t at = sleeps_at(&w[n - 1], wait_until_over, &cond);
        int layout = minor < 41 ? 0 : 1;
        CHECK(at - gt_glibc_cond_layouts[layout].signals <= sizeof(uint32_t), "at %zu", at);
        CHECK_EQ(gt_glibc_cond_flags(&cond), n << GT_COND_WAITERS_SHIFT | flags);
    }
    pthread_mutex_lock(&cond_mutex);
    is_over = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&cond_mutex);
    ends(&w[0]);
    ends(&w[1]);
    CHECK_EQ(gt_glibc_cond_flags(&cond), flags);
}

/* Semaphores, barriers, once ------------------------------------------------------------------ */

static void take(void *sem)
{
    sem_wait(sem);
}

static void test_sem(int shared)
{
    sem_t sem;
    struct waiter w;
    const struct gt_sem *words = (const struct gt_sem *)&sem;
    sem_init(&sem, shared, 3);
    CHECK_EQ(words->tokens_and_waiters, 3);
    CHECK_EQ(!!words->shared, shared);
    CHECK_EQ(gt_glibc_sem_is_awaited(words), false);
    sem_init(&sem, shared, 0);
    sleeps_at(&w, take, &sem);
    CHECK_EQ(gt_glibc_sem_is_awaited(words), true);
    CHECK_EQ(words->tokens_and_waiters, 1ull << 32);
    sem_post(&sem);
    ends(&w);
    CHECK_EQ(gt_glibc_sem_is_awaited(words), false);
}

static void arrive(void *barrier)
{
    pthread_barrier_wait(barrier);
}

static void test_barrier(int shared)
{
    pthread_barrier_t barrier;
    pthread_barrierattr_t attr;
    struct waiter w[2];
    const struct gt_barrier *words = (const struct gt_barrier *)&barrier;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, shared);
    pthread_barrier_init(&barrier, &attr, 3);
    CHECK_EQ(!!words->shared, shared);
    CHECK_EQ(words->count, 3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(gt_glibc_barrier_lacks_one(words), false);
            CHECK_EQ(sleeps_at(&w[i], arrive, &barrier), offsetof(struct gt_barrier, round));
        }
        CHECK_EQ(gt_glibc_barrier_lacks_one(words), true);
        pthread_barrier_wait(&barrier);
        ends(&w[0]);
        ends(&w[1]);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void once_runs(void)
{
    CHECK_EQ(once & (GT_ONCE_RUNNING | GT_ONCE_DONE), GT_ONCE_RUNNING);
}

static void test_once(void)
{
    CHECK_EQ(once, 0);
    pthread_once(&once, once_runs);
    CHECK_EQ(once, GT_ONCE_DONE);
}

/* stdio --------------------------------------------------------------------------------------- */

static void lock_stream(void *file)
{
    flockfile(file);
    funlockfile(file);
}

static void test_stdio_lock(void)
{
    FILE *file = tmpfile();
    struct waiter w;
    const struct gt_stdio_lock *lock = file->_lock;
    flockfile(file);
    CHECK_EQ(lock->word, GT_LLL_HELD);
    CHECK_EQ(lock->owner, pthread_self());
    CHECK_EQ(lock->count, minor < 37 ? 1 : 0);
    CHECK_EQ(sleeps_at(&w, lock_stream, file), (uintptr_t)lock - (uintptr_t)file);
    CHECK_EQ(lock->word, GT_LLL_AWAITED);
    funlockfile(file);
    ends(&w);
    CHECK_EQ(lock->word, 0);
    CHECK_EQ(lock->owner, 0);
    fclose(file);
}

static void test_stdio_flags(void)
{
    FILE *file = tmpfile();
    setvbuf(file, NULL, _IOFBF, 0);
    CHECK_EQ(file->_flags & (GT_STDIO_UNBUFFERED | GT_STDIO_BY_LINE), 0);
    setvbuf(file, NULL, _IOLBF, 0);
    CHECK_EQ(file->_flags & (GT_STDIO_UNBUFFERED | GT_STDIO_BY_LINE), GT_STDIO_BY_LINE);
    setvbuf(file, NULL, _IONBF, 0);
    CHECK_EQ(file->_flags & (GT_STDIO_UNBUFFERED | GT_STDIO_BY_LINE), GT_STDIO_UNBUFFERED);
    fclose(file);
}

static void test_stdio_wide(void)
{
    FILE *file = tmpfile();
    fputws(L"abc", file);
    const struct gt_stdio_wide *wide = (const struct gt_stdio_wide *)file->_wide_data;
    CHECK(file->_mode > 0);
    CHECK_EQ(wide->write_ptr - wide->write_base, 3);
    CHECK(wide->write_ptr < wide->write_end && wcsncmp(wide->write_base, L"abc", 3) == 0);
    rewind(file);
    CHECK(fgetwc(file) == L'a');
    CHECK_EQ(wide->read_ptr - wide->read_base, 1);
    CHECK_EQ(wide->read_end - wide->read_ptr, 2);
    fclose(file);
}

/* Threads and memory -------------------------------------------------------------------------- */

static void test_tcb(void)
{
    uintptr_t at = (uintptr_t)pthread_self();
    const struct gt_tcb_head *head = (const struct gt_tcb_head *)at;
    bool found = false;
    for (uintptr_t p = at; p < at + GT_TCB_HAS_ID; p += sizeof(uint32_t))
        found |= gt_glibc_load((const void *)p) == self();
    CHECK(found);
#if defined(__x86_64__)
    CHECK_EQ(at % GT_TCB_ALIGNED, 0);
    CHECK_EQ(head->tcb, at);
    CHECK_EQ(head->self, at);
#else
    (void)head;
#endif
}

static void join(void *other)
{
    pthread_join(*(pthread_t *)other, NULL);
}

static void test_join(void)
{
    sem_t sem;
    struct waiter joined, joiner;
    sem_init(&sem, 0, 0);
    sleeps_at(&joined, take, &sem);
    size_t offset = sleeps_at(&joiner, join, &joined.thread);
    const char *at = (const char *)&joined.thread + offset;
    if (minor >= 43) {
        CHECK(gt_glibc_load(at) <= GT_TCB_STATE_MOST);
        at -= GT_TCB_STATE;
    }
    CHECK_EQ(gt_glibc_load(at), joined.tid);
    CHECK((uintptr_t)at - (uintptr_t)joined.thread < GT_TCB_HAS_ID);
    sem_post(&sem);
    ends(&joiner);
}

static void test_heap(void)
{
    enum { MMAPPED = 1 << 20 };
    for (size_t size = 1; GT_ARCH_HEAP_HEADERS && size < 2 * MMAPPED; size = size * 3 / 2 + 1) {
        void *p = malloc(size);
        size_t header = *(const size_t *)((uintptr_t)p - sizeof header);
        CHECK_EQ(!!(header & GT_HEAP_HEADER_MMAPPED), size >= MMAPPED);
        if (size < MMAPPED)
            CHECK_EQ((header & ~(size_t)GT_HEAP_HEADER_FLAGS) - sizeof header,
                     malloc_usable_size(p));
        free(p);
    }
}

int main(void)
{
    minor = gt_glibc_minor();
    gt_glibc_init();
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    test_mutexes();
    test_recursive();
    test_writer();
    test_readers();
    test_writers_first();
    for (int i = 0; i < 4; i++)
        test_cond(i & 1, i & 2);
    for (int shared = 0; shared < 2; shared++) {
        test_sem(shared);
        test_barrier(shared);
    }
    test_once();
    test_stdio_lock();
    test_stdio_flags();
    test_stdio_wide();
    test_tcb();
    test_join();
    test_heap();
    return 0;
}
