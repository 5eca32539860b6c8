/* Barriers: the last thread to arrive wakes all others. */
#include "wait.h"

/*
 * How many it takes: the third word of glibc's struct pthread_barrier (sysdeps/nptl/
 * internaltypes.h, the same on all architectures since 2.25).
 */
static uint32_t threads_of(const pthread_barrier_t *barrier)
{
    return ((const uint32_t *)barrier)[2];
}

GT_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    GT_WAIT(wait) = gt_wait_begin_for(&(struct gt_wait_for){.hook = GT_HOOK_pthread_barrier_wait,
                                                            .reason = GT_REASON_SYNC,
                                                            .addr = barrier,
                                                            .count = threads_of(barrier),
                                                            .final = true});
    return gt_real.pthread_barrier_wait(barrier);
}
