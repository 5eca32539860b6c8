/* Sleeping, and giving up the CPU. Nobody else ends these. */
#include "capture.h"
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

/* The thread stays runnable. */
static struct gt_wait yield_begin(enum gt_hook hook)
{
    struct gt_wait wait = {NULL, NULL};
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return wait;
    wait.stack = gt_capture(hook);
    if (gt_writer_enter(&t->w)) {
        if (gt_ev_go_stop(&t->w, GT_REASON_YIELD, wait.stack))
            wait.thread = t;
        gt_writer_leave(&t->w);
    }
    gt_thread_leave(t);
    return wait;
}

GT_EXPORT int sched_yield(void)
{
    GT_WAIT(wait) = yield_begin(GT_HOOK_sched_yield);
    return gt_real.sched_yield();
}

GT_EXPORT void thrd_yield(void)
{
    GT_WAIT(wait) = yield_begin(GT_HOOK_thrd_yield);
    gt_real.thrd_yield();
}
