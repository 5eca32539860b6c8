/*
 * What the tracer knows of each thread, and the guard around its own code.
 *
 * A hook that wants to record calls gt_thread_enter and, whatever happens, calls gt_thread_leave on
 * the result before it calls the real function: the guard covers our code only. Recording functions
 * take the struct gt_thread that gt_thread_enter returned, so that they cannot be called outside
 * the guard.
 */
#pragma once

#include "sampled.h"

#include "preload/registry/holds.h"
#include "preload/registry/park.h"
#include "preload/registry/regions.h"
#include "preload/stacks/python_names.h"
#include "preload/stacks/unwind.h"
#include "preload/upward.h"

#include <pthread.h>
#include <stddef.h>

/* Where the program called a hook of ours: enough to find its stack while the call is under way. */
struct gt_site {
    uint32_t hook;                    /* the leaf */
    _Atomic(const uintptr_t *) frame; /* the hook's frame; NULL: it may be gone */
    uintptr_t fp, pc;                 /* the caller's frame pointer and return address in it */
    uintptr_t within;                 /* an address in the hook's code */
    uintptr_t python;                 /* see gt_capture_python */
    _Atomic uint32_t looked_at;       /* futex: another thread is walking this stack */
};

/* The thread's last call on a descriptor whose stream has a name: waits/channels.h. */
struct gt_channel {
    uint64_t since; /* when the call began */
    int fd;
    uint32_t name;
};

/* A wait that stays open between two calls of its hook: gt_wait_keep. */
struct gt_kept_wait {
    const void *addr; /* NULL: none */
    uint64_t since;
};

/* The lock that the thread has tried for in vain since its last wait: gt_wait_begin_sleep. */
struct gt_tried {
    const void *lock; /* NULL: none */
    enum gt_lock_kind kind;
};

/* The last condition variable that the thread was at, while it keeps the mutex: gt_mutex_keep. */
struct gt_kept_mutex {
    const void *mutex; /* NULL: it has given the mutex up */
    const void *cond;
};

enum { GT_INSIDE_FOR_GOOD = 2 }; /* the process ends, or nothing is recorded yet */

struct gt_thread {
    struct gt_free free;
    uint32_t inside;                /* our code runs: hooks entered now go straight through */
    bool jumped;                    /* longjmp may have left our code */
    bool stuck;                     /* see gt_thread_unstick */
    bool stands;                    /* see gt_thread_stand */
    uintptr_t frame;                /* of the hook whose wait or call is under way; 0: none */
    uintptr_t stack_lo, stack_size; /* the thread was last seen here; see gt_thread_elsewhere */
    struct gt_writer w;
    _Alignas(64) struct gt_parking parking; /* the wait under way */
    struct gt_kept_wait kept;
    struct gt_tried tried;
    struct gt_kept_mutex kept_mutex;
    struct gt_holds holds;
    uintptr_t python;    /* gt_capture_python at its last wait or wake-up while Python ran */
    uint32_t exit_round; /* how often the key destructor ran */
    pthread_t self;
    void *(*start)(void *);
    void *arg;
    size_t stack_bytes;        /* stack size of a thread to be made; 0: not known */
    char name[GT_PYTHON_NAME]; /* its name in the maker's Python; empty: none */
    struct gt_site call;       /* the last call that was announced without a stack */
    struct gt_channel channel;
    uint64_t next_made[3]; /* by gt_made: from when on a short call is written: waits/slice.h */
    struct gt_sampler sampler;
    struct gt_thread *next;       /* in the list of cloned threads */
    struct gt_omp_wait *omp_wait; /* see hooks/openmp.c; the next thread here may use it, too */
    /* Large, so they stand last: a thread that does not use them does not touch their pages. */
    struct gt_trail trail;
    struct gt_regions regions;
};

extern __thread struct gt_thread *gt_self __attribute__((tls_model("initial-exec")));

/* The thread to which the writer belongs. */
static inline struct gt_thread *gt_thread_of(const struct gt_writer *w)
{
    return (struct gt_thread *)((uintptr_t)w - offsetof(struct gt_thread, w));
}

/* Whether the caller is, or was called by, a signal handler on a stack of its own. */
bool gt_thread_on_signal_stack(void);

/* The state of a thread of this process as ps(1) names it: R has a CPU or waits for one, Z has
 * ended. 0: not known. */
char gt_thread_state(uint32_t tid);

/*
 * Tries again to finish a wait of t. A thread is stuck if it could not leave the registry after a
 * wait (gt_registry_remove), or could not write the wait's end. It stays inside the guard, so that
 * it records nothing, and calls this function at each hook. Returns t, inside the guard and no
 * longer stuck, or NULL.
 */
struct gt_thread *gt_thread_unstick(struct gt_thread *t);

/* gt_self of threads that record nothing: the drain thread (gt_thread_ignore), and a thread while
 * it appears in the trace or after its end. */
extern struct gt_thread gt_nobody;

/* Whether threads are followed; false before the constructor and after the end. */
static inline bool gt_recording(void)
{
    return atomic_load_explicit(&gt_gen.current, memory_order_relaxed) != 0;
}

/*
 * Whether events written now will be thrown away, so that callers can save effort. The events are
 * still needed: recording may start at any moment, and must then know where threads are.
 */
static inline bool gt_muted(void)
{
    return atomic_load_explicit(&gt_gen.current, memory_order_relaxed) ==
           atomic_load_explicit(&gt_gen.mute, memory_order_relaxed);
}

/*
 * Ends what t's goroutine was doing. If that fails, t is stuck. Inside the guard.
 */
void gt_thread_resume(struct gt_thread *t, int64_t patience_ns);

/* `make debug`: whether a signal handler may have interrupted our code in t's thread. */
bool gt_thread_is_interrupted(struct gt_thread *t);

/*
 * Enters the guard and returns the current thread; NULL: record nothing. A thread that is seen for
 * the first time appears in the trace here. Signal handlers may call it.
 */
static inline struct gt_thread *gt_thread_enter(void)
{
    if (!gt_recording())
        return NULL;
    struct gt_thread *t = gt_self;
    if (__builtin_expect(!t, 0))
        return gt_upward.appear();
    if (__builtin_expect((uintptr_t)__builtin_frame_address(0) - t->stack_lo >= t->stack_size, 0))
        t = gt_upward.elsewhere(t);
    if (!t)
        return NULL;
    if (__builtin_expect(t->inside, 0)) {
        GT_ASSERT("our code calls no hook of ours", gt_thread_is_interrupted(t));
        return t->stuck ? gt_thread_unstick(t) : NULL;
    }
    t->inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
    return t;
}

/* Enters the guard in the second half of a hook. t: the result of gt_thread_enter in the first. */
static inline void gt_thread_reenter(struct gt_thread *t)
{
    t->inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void gt_thread_leave(struct gt_thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    /* release: nothing that the thread has read is freed before this. Pairs with is_inside of
     * process_start.c. */
    __atomic_store_n(&t->inside, t->stuck, __ATOMIC_RELEASE);
}

/*
 * For a hook that waits. If a signal handler calls it that has interrupted our code, the thread
 * stands in that code until gt_thread_go_on: see gt_standing. Whether it does.
 */
bool gt_thread_stand(void);
void gt_thread_go_on(struct gt_thread *t);

/* Records nothing of the calling thread from here on; called by the drain thread. */
void gt_thread_ignore(void);
