/*
 * What the tracer knows of each thread, and the guard around its own code.
 *
 * A hook that wants to record calls gt_thread_enter and, whatever happens, gt_thread_leave on what
 * it got, before it calls the real function: the guard covers our code only. Recording functions
 * take the struct, so that they cannot be called without it.
 */
#ifndef GT_THREAD_H
#define GT_THREAD_H

#include "sampler.h"

#include "encoder/writer.h"
#include "preload/hooks/annotate.h"
#include "preload/hooks/hot.h"
#include "preload/hooks/park.h"
#include "preload/stacks/python_names.h"
#include "preload/stacks/unwind.h"

#include <pthread.h>
#include <stddef.h>

/* Where the program called a hook of ours: enough to find the stack by while that is under way. */
struct gt_site {
    uint32_t hook;                    /* the leaf */
    _Atomic(const uintptr_t *) frame; /* the hook's; NULL: it may be gone */
    uintptr_t fp, pc;                 /* what stands there */
    uintptr_t within;                 /* an address in the hook's code */
    uintptr_t python;                 /* see gt_capture_python */
    _Atomic uint32_t looked_at;       /* futex: another thread walks from there */
};

/* What its last call was about that was about something with a name: hooks/channels.h. */
struct gt_channel {
    uint64_t since; /* when that began */
    int fd;
    uint32_t name;
};

enum { GT_INSIDE_FOR_GOOD = 2 }; /* the process ends, or nothing is recorded yet */

struct gt_thread {
    struct gt_free free;
    struct gt_writer w;
    struct gt_parking parking;      /* where it waits */
    uint32_t inside;                /* our code runs: hooks entered now go straight through */
    uint32_t exit_round;            /* how often the key destructor ran */
    uintptr_t frame;                /* where the wait or call under way began; 0: there is none */
    bool jumped;                    /* longjmp may have left it */
    bool stuck;                     /* see gt_thread_unstick */
    uintptr_t stack_lo, stack_size; /* where it was last seen to run; see gt_thread_elsewhere */
    pthread_t self;
    void *(*start)(void *);
    void *arg;
    size_t stack_bytes;        /* of a thread to be made; 0: not known */
    char name[GT_PYTHON_NAME]; /* and what its maker calls it; empty: nothing */
    struct gt_site call;       /* the last one announced without a stack */
    struct gt_channel channel;
    struct gt_holds holds;
    struct gt_sampler sampler;
    struct gt_thread *next; /* in the list of cloned ones */
    /* Large: a thread that makes no use of its pages does not touch them. */
    struct gt_trail trail;
    struct gt_regions regions;
};

extern __thread struct gt_thread *gt_self __attribute__((tls_model("initial-exec")));

/* Whose writer it is. */
static inline struct gt_thread *gt_thread_of(const struct gt_writer *w)
{
    return (struct gt_thread *)((uintptr_t)w - offsetof(struct gt_thread, w));
}

struct gt_thread *gt_thread_appear(void);

/*
 * For met.c. A thread of the program's that nobody has seen calling appears in the trace, and runs,
 * as far as that says; its pthread_t and name, NULL: it has none of its own. The caller stands in
 * for it from then on. NULL: no memory.
 */
struct gt_string;
struct gt_thread *gt_thread_meet(uint32_t tid, pthread_t self, struct gt_stack *routine,
                                 struct gt_string *label);

/* The calling thread is that one, and inside; and then it writes for itself, or is nobody again. */
void gt_thread_become(struct gt_thread *t);
void gt_thread_became(struct gt_thread *t);
void gt_thread_forget_self(void);

/* It has ended unseen. */
void gt_thread_gone(struct gt_thread *t);

/*
 * t's thread runs on another stack than before: a signal stack, a coroutine. Or it is not t's
 * thread at all: clone(2) without CLONE_SETTLS makes a thread that has its parent's thread-local
 * variables. Returns whose it really is; NULL when it cannot be traced.
 */
struct gt_thread *gt_thread_elsewhere(struct gt_thread *t);

/* Whether the caller is, or was called by, a signal handler on a stack of its own. */
bool gt_thread_on_signal_stack(void);

/*
 * A thread that could not leave the registry after a wait (gt_registry_remove), or not write the
 * wait's end, stays inside, so that nothing is recorded, and tries again at each hook. The thread,
 * inside and free, or NULL.
 */
struct gt_thread *gt_thread_unstick(struct gt_thread *t);

/* Nothing to record, in a thread that is being or must not be traced: see gt_thread_ignore. */
extern struct gt_thread gt_nobody;

/* Whether threads are followed; false before the constructor and after the end. */
static inline bool gt_recording(void)
{
    return atomic_load_explicit(&gt_gen.current, memory_order_relaxed) != 0;
}

/*
 * Whether what is written now will be forgotten (but may be needed to know where threads are when
 * recording starts, at any moment). To save effort with.
 */
static inline bool gt_muted(void)
{
    return atomic_load_explicit(&gt_gen.current, memory_order_relaxed) ==
           atomic_load_explicit(&gt_gen.mute, memory_order_relaxed);
}

/* `make debug`: whether a signal handler may have interrupted our code in t's thread. */
bool gt_thread_is_interrupted(struct gt_thread *t);

/*
 * The current thread, marked as inside; NULL: record nothing. A thread seen for the first time
 * appears in the trace here. Callable from signal handlers.
 */
static inline struct gt_thread *gt_thread_enter(void)
{
    if (!gt_recording())
        return NULL;
    struct gt_thread *t = gt_self;
    if (__builtin_expect(!t, 0))
        return gt_thread_appear();
    if (__builtin_expect((uintptr_t)__builtin_frame_address(0) - t->stack_lo >= t->stack_size, 0))
        t = gt_thread_elsewhere(t);
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

/* The second half of a hook, for what it got from gt_thread_enter in the first. */
static inline void gt_thread_reenter(struct gt_thread *t)
{
    t->inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void gt_thread_leave(struct gt_thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    /* release: what it has read is not given back before. Pairs with is_inside of process.c. */
    __atomic_store_n(&t->inside, t->stuck, __ATOMIC_RELEASE);
}

/* The constructor, and a forked child before it records: the calling thread is the main one. */
void gt_thread_main(void);

/* Writes the main thread's beginning; recording has started. */
void gt_thread_main_begin(void);

/*
 * The caller is no thread of the program's, and was the main one for want of another. There is
 * always one more thread than are known, from here on.
 */
void gt_thread_main_leave(void);

/* Whether there are other threads already: other libraries' constructors have made them. */
bool gt_thread_others(void);

/* The calling thread is about to end by the bare system call, of which libc does not know. */
void gt_thread_exit(void);

/* From here on nothing of the calling thread is recorded (the drain thread). */
void gt_thread_ignore(void);

/* In a forked child: the caller is the only thread. */
void gt_thread_after_fork(void);

/* Once: the key whose destructor tells the end of a thread. */
void gt_thread_init(void);

/* keys.c: the program has made a key with a destructor: code of it may run when a thread ends. */
extern _Atomic bool gt_keys_have_destructors;

/*
 * The program shall have that key, there are no others left; false: it has. From here on the ends
 * of threads that begin are seen before the program's keys are destroyed, those of others not.
 */
bool gt_thread_give_key(void);

#endif
