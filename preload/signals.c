/* See signals.h. */
#include "signals.h"

#include "real.h"

#include "../encoder/futex.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

static struct {
    int number; /* 0: none */
    void (*handler)(int, siginfo_t *, void *);
    struct sigaction program; /* its action, as the program believes */
    struct gt_lock lock;      /* of `program` */
} taken;

int gt_signals_find(void)
{
    struct sigaction action;
    for (int n = SIGRTMAX; n >= SIGRTMIN; n--) {
        if (gt_real.sigaction(n, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
            return n;
    }
    return 0;
}

static bool has_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Calls that a signal of the program's interrupts go on or do not, as it wants. */
static int install(const struct sigaction *program)
{
    struct sigaction ours = {.sa_sigaction = taken.handler,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (has_handler(program) && !(program->sa_flags & SA_RESTART))
        ours.sa_flags &= ~SA_RESTART;
    sigfillset(&ours.sa_mask);
    return gt_real.sigaction(taken.number, &ours, NULL);
}

bool gt_signals_take(int number, void (*handler)(int, siginfo_t *, void *))
{
    if (gt_real.sigaction(number, NULL, &taken.program) != 0)
        return false;
    taken.number = number;
    taken.handler = handler;
    if (install(&taken.program) == 0)
        return true;
    taken.number = 0;
    return false;
}

/* Kept; what the program reads and writes is `program`. */
static void exchange(const struct sigaction *action, struct sigaction *old)
{
    /* Patience, not more: the holder may be what a signal handler has interrupted. */
    bool locked = gt_lock_within(&taken.lock, GT_LOCK_PATIENCE_NS);
    struct sigaction before = taken.program;
    if (action) {
        taken.program = *action;
        install(action);
    }
    if (locked)
        gt_unlock(&taken.lock);
    if (old)
        *old = before;
}

/* What it does without a handler is to end the process; that it does when we return. */
static void by_default(int number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    gt_real.sigaction(number, &action, NULL);
    gt_syscall(SYS_tgkill, gt_syscall(SYS_getpid), gt_syscall(SYS_gettid), number);
}

void gt_signals_forward(int number, siginfo_t *info, void *context)
{
    struct sigaction action;
    exchange(NULL, &action);
    if (!has_handler(&action)) {
        if (action.sa_handler == SIG_DFL)
            by_default(number);
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND)
        exchange(&(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigset_t mask, all = ((ucontext_t *)context)->uc_sigmask;
    sigorset(&mask, &all, &action.sa_mask);
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&mask, number);
    gt_real.pthread_sigmask(SIG_SETMASK, &mask, &all);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
    gt_real.pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/* What the program does with signals ---------------------------------------------------------- */

/* A signal stack has room for the program's handler; not for ours on top of that. */
static int set_other(int number, const struct sigaction *action, struct sigaction *old)
{
    if (!action || !(action->sa_flags & SA_ONSTACK))
        return gt_real.sigaction(number, action, old);
    struct sigaction alone = *action;
    sigaddset(&alone.sa_mask, taken.number);
    return gt_real.sigaction(number, &alone, old);
}

GT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (__builtin_expect(!taken.number, 1))
        return gt_real.sigaction(number, action, old);
    if (number != taken.number)
        return set_other(number, action, old);
    exchange(action, old);
    return 0;
}

GT_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    if (__builtin_expect(!taken.number || number != taken.number || handler == SIG_ERR, 1))
        return gt_real.signal(number, handler);
    struct sigaction old;
    exchange(&(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, &old);
    return old.sa_handler;
}

/*
 * While the signal is blocked it stays pending: for sigwait of a thread that waits for all signals,
 * or for a call that opens the mask while it waits. So it is never blocked.
 */
#define MASK(name)                                                            \
    GT_EXPORT int name(int how, const sigset_t *set, sigset_t *old)           \
    {                                                                         \
        sigset_t ours;                                                        \
        if (__builtin_expect(taken.number && set && how != SIG_UNBLOCK, 0)) { \
            ours = *set;                                                      \
            sigdelset(&ours, taken.number);                                   \
            set = &ours;                                                      \
        }                                                                     \
        return gt_real.name(how, set, old);                                   \
    }

MASK(sigprocmask)
MASK(pthread_sigmask)
