/* See libc_signal.h. */
#include "libc_signal.h"

#include "encoder/base/libc.h"
#include "preload/bind/real.h"

#include <stdatomic.h>
#include <stdint.h>

typedef void handler_fn(int, siginfo_t *, void *);

/* The kernel's struct sigaction: libc's function refuses this signal. */
struct action {
    handler_fn *handler;
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static struct action ours; /* valid once `taken` */
static _Atomic bool taken;
static _Atomic(handler_fn *) libcs;

enum { RESTORER = 0x04000000 };

static long exchange(int number, const struct action *action, struct action *old)
{
    return gt_syscall(SYS_rt_sigaction, number, action, old, sizeof action->mask);
}

/*
 * Takes the restorer, the code to which a handler returns, from an action that libc sets, so that
 * debuggers know it. There is none where the kernel has its own.
 */
static bool take_restorer(struct action *to)
{
    struct action before, after;
    struct sigaction same;
    if (exchange(SIGRTMAX, NULL, &before) != 0 || gt_libc.sigaction(SIGRTMAX, NULL, &same) != 0 ||
        gt_libc.sigaction(SIGRTMAX, &same, NULL) != 0)
        return false;
    bool found =
        exchange(SIGRTMAX, NULL, &after) == 0 && (after.restorer || !(after.flags & RESTORER));
    exchange(SIGRTMAX, &before, NULL);
    to->restorer = after.restorer;
    to->flags |= after.flags & RESTORER;
    return found;
}

static bool is_handler(const struct action *action)
{
    return action->handler != (handler_fn *)(uintptr_t)SIG_DFL &&
           action->handler != (handler_fn *)(uintptr_t)SIG_IGN;
}

/*
 * Finds libc's restorer. If there are threads, libc has set an action for this signal, and no other
 * action needs to be touched. In a program started by posix_spawn(3) the signal is ignored and has
 * no restorer.
 */
static bool find_restorer(struct action *to)
{
    struct action libcs_own;
    if (exchange(GT_LIBC_SIGNAL, NULL, &libcs_own) != 0 || !is_handler(&libcs_own))
        return take_restorer(to);
    to->restorer = libcs_own.restorer;
    to->flags |= libcs_own.flags & RESTORER;
    return true;
}

bool gt_libc_signal_take(handler_fn *handler)
{
    struct sigaction unused;
    struct action wanted = {
        .handler = handler, .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART, .mask = UINT64_MAX};
    if (gt_libc.sigaction(GT_LIBC_SIGNAL, NULL, &unused) == 0 || !find_restorer(&wanted))
        return false;
    ours = wanted;
    atomic_store(&taken, true);
    gt_libc_signal_retake();
    return true;
}

/* Whether `before` was libc's action; if so, notes its handler for gt_libc_signal_forward. */
static bool note_libcs(const struct action *before)
{
    bool other = before->handler != ours.handler;
    if (other)
        atomic_store(&libcs, before->handler);
    return other;
}

void gt_libc_signal_retake(void)
{
    struct action before;
    if (atomic_load(&taken) && exchange(GT_LIBC_SIGNAL, NULL, &before) == 0 &&
        note_libcs(&before) && exchange(GT_LIBC_SIGNAL, &ours, &before) == 0)
        note_libcs(&before);
}

/* Lets the signal end the process: libc has no handler, since no thread was made. */
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
