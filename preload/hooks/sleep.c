/* Sleeping, and giving up the CPU. Nobody else ends these. */
#include "wait.h"

#define SLEEP(result, name, parameters, arguments)                            \
    GT_EXPORT result name parameters                                          \
    {                                                                         \
        GT_WAIT(wait) = gt_wait_begin(GT_HOOK_##name, GT_REASON_SLEEP, NULL); \
        return gt_real.name arguments;                                        \
    }

SLEEP(unsigned, sleep, (unsigned seconds), (seconds))
SLEEP(int, usleep, (useconds_t us), (us))
SLEEP(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
SLEEP(int, clock_nanosleep,
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
      (clock, flags, time, left))
SLEEP(int, thrd_sleep, (const struct timespec *time, struct timespec *left), (time, left))

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
