/*
 * Programs linked before glibc 2.3.2 use another layout of pthread_cond_t, told apart by symbol
 * version only (x86-64). Our functions have no version, so they get the calls of both: a caller
 * from a module that asked for the old version must be sent to the old implementation.
 */
#ifndef GT_OLD_COND_H
#define GT_OLD_COND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct gt_old_cond {
    __typeof__(&pthread_cond_wait) wait;
    __typeof__(&pthread_cond_timedwait) timedwait;
    __typeof__(&pthread_cond_signal) signal;
    __typeof__(&pthread_cond_broadcast) broadcast;
};
extern struct gt_old_cond gt_old_cond;

extern _Atomic bool gt_old_cond_users; /* any such module was ever seen */

/* Looks at all loaded modules. Not in signal handlers. */
void gt_old_cond_scan(void);

bool gt_old_cond_calls_slow(const void *caller);

/* Whether the code at `caller`, a return address, means the old functions. */
static inline bool gt_old_cond_calls(const void *caller)
{
    return __builtin_expect(atomic_load_explicit(&gt_old_cond_users, memory_order_relaxed), 0) &&
           gt_old_cond_calls_slow(caller);
}

#endif
