/*
 * pthread_once and call_once: a thread that comes while another runs the routine waits for that
 * one. The wake-up must be written before the real function makes it, so the routine is called
 * through one of ours.
 */
#include "wait.h"

/* glibc's states of a once_control (nptl/pthread_once.c): bit 0 running, bit 1 done. */
enum { RUNNING = 1, DONE = 2 };

/* The call that this thread is making; nested ones stand on the stack of their hooks. */
struct once {
    void (*routine)(void);
    enum gt_hook hook;
    const void *control;
    struct once *outer;
};
static __thread struct once *current __attribute__((tls_model("initial-exec")));

static void over(struct once **once)
{
    gt_wake_all((*once)->hook, (*once)->control);
}

/* Left by exceptions and cancellation too: then another thread gets its turn. */
static void run(void)
{
    __attribute__((cleanup(over))) struct once *once = current;
    once->routine();
}

static void pop(struct once *once)
{
    current = once->outer;
}

static int state_of(const void *control)
{
    return __atomic_load_n((const int *)control, __ATOMIC_ACQUIRE);
}

GT_EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    int state = state_of(control);
    if (__builtin_expect(state & DONE, 1))
        return gt_real.pthread_once(control, routine);
    __attribute__((cleanup(pop))) struct once once = {routine, GT_HOOK_pthread_once, control,
                                                      current};
    current = &once;
    if (!(state & RUNNING))
        return gt_real.pthread_once(control, run);
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_pthread_once, GT_REASON_SYNC, control);
    return gt_real.pthread_once(control, run);
}

GT_EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
    int state = state_of(flag);
    if (__builtin_expect(state & DONE, 1))
        return gt_real.call_once(flag, routine);
    __attribute__((cleanup(pop))) struct once once = {routine, GT_HOOK_call_once, flag, current};
    current = &once;
    if (!(state & RUNNING))
        return gt_real.call_once(flag, run);
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_call_once, GT_REASON_SYNC, flag);
    gt_real.call_once(flag, run);
}
