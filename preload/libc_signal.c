/* See libc_signal.h. */
#include "libc_signal.h"

#include "real.h"

#include "encoder/base/futex.h"

#include <stdatomic.h>
#include <stdint.h>

typedef void handler_fn(int, siginfo_t *, void *);

/* As the kernel has it: libc's sigaction refuses this number. */
struct action {
    handler_fn *handler;
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static struct action ours;
static _Atomic(handler_fn *) libcs;

static long exchange(int number, const struct action *action, struct action *old)
{
    return gt_syscall(SYS_rt_sigaction, number, action, old, sizeof action->mask);
}

/*
 * What a handler returns to, where debuggers know it: libc's own, in any action that libc sets; or
 * none, where the kernel has its own.
 */
static bool take_restorer(struct action *to)
{
    struct action before, after;
    struct sigaction same;
    if (exchange(SIGRTMAX, NULL, &before) != 0 || gt_real.sigaction(SIGRTMAX, NULL, &same) != 0 ||
        gt_real.sigaction(SIGRTMAX, &same, NULL) != 0)
        return false;
    enum { RESTORER = 0x04000000 };
    bool found =
        exchange(SIGRTMAX, NULL, &after) == 0 && (after.restorer || !(after.flags & RESTORER));
    exchange(SIGRTMAX, &before, NULL);
    to->restorer = after.restorer;
    to->flags |= after.flags & RESTORER;
    return found;
}

bool gt_libc_signal_take(handler_fn *handler)
{
    struct sigaction unused;
    ours = (struct action){
        .handler = handler, .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART, .mask = UINT64_MAX};
    if (gt_real.sigaction(GT_LIBC_SIGNAL, NULL, &unused) == 0 || !take_restorer(&ours)) {
        ours.handler = NULL;
        return false;
    }
    gt_libc_signal_retake();
    return true;
}

void gt_libc_signal_retake(void)
{
    struct action before;
    if (ours.handler && exchange(GT_LIBC_SIGNAL, &ours, &before) == 0 &&
        before.handler != ours.handler)
        atomic_store(&libcs, before.handler);
}

/* No thread was made, so libc has no handler: it ends the process. */
static void by_default(void)
{
    exchange(GT_LIBC_SIGNAL, &(struct action){.handler = NULL}, NULL);
    gt_syscall(SYS_tgkill, gt_syscall(SYS_getpid), gt_syscall(SYS_gettid), GT_LIBC_SIGNAL);
}

void gt_libc_signal_forward(int number, siginfo_t *info, void *context)
{
    handler_fn *handler = atomic_load(&libcs);
    if (!handler)
        by_default();
    else if (handler != (handler_fn *)(uintptr_t)SIG_IGN)
        handler(number, info, context);
}
