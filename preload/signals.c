/* See signals.h. */
#include "signals.h"

#include "fatal.h"
#include "options.h"
#include "real.h"

#include "../encoder/drain.h"
#include "../encoder/futex.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#define TAKEN_MAX 2

static struct taken {
    int number; /* 0: none */
    void (*handler)(int, siginfo_t *, void *);
    struct sigaction program; /* its action, as the program believes */
    struct gt_lock lock;      /* of `program` */
} taken[TAKEN_MAX];

static bool any; /* is taken, or watched by fatal.c */

static struct taken *taken_as(int number)
{
    for (int i = 0; any && number && i < TAKEN_MAX; i++) {
        if (taken[i].number == number)
            return &taken[i];
    }
    return NULL;
}

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
static int install(struct taken *t)
{
    struct sigaction ours = {.sa_sigaction = t->handler,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (has_handler(&t->program) && !(t->program.sa_flags & SA_RESTART))
        ours.sa_flags &= ~SA_RESTART;
    sigfillset(&ours.sa_mask);
    return gt_real.sigaction(t->number, &ours, NULL);
}

bool gt_signals_take(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct taken *t = taken;
    while (t < taken + TAKEN_MAX && t->number)
        t++;
    if (t == taken + TAKEN_MAX || taken_as(number) ||
        gt_real.sigaction(number, NULL, &t->program) != 0)
        return false;
    t->number = number;
    t->handler = handler;
    if (install(t) != 0)
        t->number = 0;
    any |= t->number != 0;
    return t->number != 0;
}

/* Kept; what the program reads and writes is `program`. */
static void exchange(struct taken *t, const struct sigaction *action, struct sigaction *old)
{
    /* Patience, not more: the holder may be what a signal handler has interrupted. */
    bool locked = gt_lock_within(&t->lock, GT_LOCK_PATIENCE_NS);
    struct sigaction before = t->program;
    if (action) {
        t->program = *action;
        install(t);
    }
    if (locked)
        gt_unlock(&t->lock);
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
    struct taken *t = taken_as(number);
    struct sigaction action;
    exchange(t, NULL, &action);
    if (!has_handler(&action)) {
        if (action.sa_handler == SIG_DFL)
            by_default(number);
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND)
        exchange(t, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
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
    struct sigaction alone;
    if (action && (action->sa_flags & SA_ONSTACK)) {
        alone = *action;
        for (int i = 0; i < TAKEN_MAX; i++) {
            if (taken[i].number)
                sigaddset(&alone.sa_mask, taken[i].number);
        }
        action = &alone;
    }
    return gt_fatal_watches(number) ? gt_fatal_action(number, action, old)
                                    : gt_real.sigaction(number, action, old);
}

static int set_action(int number, const struct sigaction *action, struct sigaction *old)
{
    struct taken *t = taken_as(number);
    if (!t)
        return set_other(number, action, old);
    exchange(t, action, old);
    return 0;
}

GT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (__builtin_expect(!any, 1))
        return gt_real.sigaction(number, action, old);
    return set_action(number, action, old);
}

GT_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    if (__builtin_expect(!any || handler == SIG_ERR, 1) ||
        (!taken_as(number) && !gt_fatal_watches(number)))
        return gt_real.signal(number, handler);
    struct sigaction old, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaddset(&action.sa_mask, number);
    return set_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/*
 * While the signal is blocked it stays pending: for sigwait of a thread that waits for all signals,
 * or for a call that opens the mask while it waits. So it is never blocked.
 */
static const sigset_t *without_taken(const sigset_t *set, sigset_t *ours)
{
    *ours = *set;
    for (int i = 0; i < TAKEN_MAX; i++) {
        if (taken[i].number)
            sigdelset(ours, taken[i].number);
    }
    return ours;
}

#define MASK(name)                                                  \
    GT_EXPORT int name(int how, const sigset_t *set, sigset_t *old) \
    {                                                               \
        sigset_t ours;                                              \
        if (__builtin_expect(any && set && how != SIG_UNBLOCK, 0))  \
            set = without_taken(set, &ours);                        \
        return gt_real.name(how, set, old);                         \
    }

MASK(sigprocmask)
MASK(pthread_sigmask)

/* Those of the switches ----------------------------------------------------------------------- */

static void on_toggle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    int saved = errno;
    gt_drain_toggle();
    errno = saved;
}

void gt_signals_after_fork(void)
{
    for (int i = 0; i < TAKEN_MAX; i++)
        taken[i].lock = (struct gt_lock){0};
    gt_fatal_after_fork();
}

void gt_signals_init(void)
{
    if (gt_options.signal)
        gt_signals_take(gt_options.signal, on_toggle);
    if (gt_options.ring_bytes) {
        gt_fatal_init();
        any = true;
    }
}
