/*
 * The two halves of every wait: the thread that blocks, and the one that ends it. All hooks of
 * synchronization are made of these.
 */
#ifndef GT_WAIT_H
#define GT_WAIT_H

#include "../encoder/format.h"
#include "real.h"
#include "thread.h"

/* A wait under way, on the stack of the hook. */
struct gt_wait {
    struct gt_thread *thread; /* NULL: nothing recorded */
    struct gt_stack *stack;
};

/*
 * The thread is about to block in `hook`, for what happens at addr (NULL: nobody's doing, a
 * sleep). errno is kept. Follow with the real call, then gt_wait_end, also when the real call is
 * left by cancellation: declare the variable with GT_WAIT.
 */
struct gt_wait gt_wait_begin(enum gt_hook hook, enum gt_reason reason, const void *addr);

/* A wait for cond that ends by getting the mutex back. */
struct gt_wait gt_wait_begin_cond(enum gt_hook hook, const void *cond, const void *mutex);

void gt_wait_end(struct gt_wait *wait);

/* Takes the thread out of the registry; inside the guard. */
void gt_wait_forget(struct gt_thread *t);

#define GT_WAIT(name) __attribute__((cleanup(gt_wait_end))) struct gt_wait name

/* The caller is about to end waits at addr: of the oldest waiter, or of all. errno is kept. */
void gt_wake_slow(enum gt_hook hook, const void *addr, bool all);

static inline void gt_wake_one(enum gt_hook hook, const void *addr)
{
    if (__builtin_expect(gt_registry_any(addr), 0))
        gt_wake_slow(hook, addr, false);
}

static inline void gt_wake_all(enum gt_hook hook, const void *addr)
{
    if (__builtin_expect(gt_registry_any(addr), 0))
        gt_wake_slow(hook, addr, true);
}

#endif
