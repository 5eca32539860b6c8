/* Sleeping, and giving up the CPU. Nobody else ends these. */
#include "wait.h"

GT_EXPORT unsigned sleep(unsigned seconds)
{
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_sleep, GT_REASON_SLEEP, NULL);
    return gt_real.sleep(seconds);
}

GT_EXPORT int usleep(useconds_t us)
{
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_usleep, GT_REASON_SLEEP, NULL);
    return gt_real.usleep(us);
}

GT_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_nanosleep, GT_REASON_SLEEP, NULL);
    return gt_real.nanosleep(time, left);
}

GT_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                              struct timespec *left)
{
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_clock_nanosleep, GT_REASON_SLEEP, NULL);
    return gt_real.clock_nanosleep(clock, flags, time, left);
}

GT_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_thrd_sleep, GT_REASON_SLEEP, NULL);
    return gt_real.thrd_sleep(time, left);
}

GT_EXPORT int sched_yield(void)
{
    uint64_t since = gt_yield_begin();
    int result = gt_real.sched_yield();
    gt_yield_end(GT_HOOK_sched_yield, since);
    return result;
}

GT_EXPORT void thrd_yield(void)
{
    uint64_t since = gt_yield_begin();
    gt_real.thrd_yield();
    gt_yield_end(GT_HOOK_thrd_yield, since);
}
