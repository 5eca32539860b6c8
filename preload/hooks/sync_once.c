/*
 * pthread_once and call_once: a thread that comes while another thread runs the routine waits for
 * that thread. The wake-up must be written before the real function makes it. So the real function
 * calls the program's routine through one of ours.
 */
#include "preload/bind/real.h"
#include "preload/waits/wait.h"

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

/*
 * Runs the program's routine. Exceptions and cancellation may leave it, too: then another thread
 * gets its turn.
 */
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
    if (__builtin_expect(state & GT_ONCE_DONE, 1))
        return gt_real.pthread_once(control, routine);
    __attribute__((cleanup(pop))) struct once once = {routine, GT_HOOK_pthread_once, control,
                                                      current};
    current = &once;
    if (!(state & GT_ONCE_RUNNING))
        return gt_real.pthread_once(control, run);
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_pthread_once, GT_REASON_SYNC, control);
    return gt_real.pthread_once(control, run);
}

GT_EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
    int state = state_of(flag);
    if (__builtin_expect(state & GT_ONCE_DONE, 1))
        return gt_real.call_once(flag, routine);
    __attribute__((cleanup(pop))) struct once once = {routine, GT_HOOK_call_once, flag, current};
    current = &once;
    if (!(state & GT_ONCE_RUNNING))
        return gt_real.call_once(flag, run);
    GT_WAIT(wait) = gt_wait_begin(GT_HOOK_call_once, GT_REASON_SYNC, flag);
    gt_real.call_once(flag, run);
}
