/* See signals.h. */
#include "signals.h"

#include "fatal.h"
#include "libc_signal.h"

#include "encoder/base/futex.h"
#include "encoder/drain/drain.h"
#include "preload/bind/real.h"
#include "preload/shared/options.h"

static struct {
    int number;               /* 0: none */
    struct sigaction program; /* the action that the program believes it has */
    struct gt_lock lock;      /* protects `program` */
} taken;

/*
 * The signals of gt_signals_keep_out, as the first word of a set. The sampler's signal is in it
 * from the start: a handler of the program may be running when the sampler begins.
 */
static unsigned long kept_out = 1ul << (GT_LIBC_SIGNAL - 1);
static _Atomic unsigned long added[_NSIG]; /* signals that we added to that handler's mask */

static bool is_taken(int number)
{
    return number && taken.number == number;
}

static bool has_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* The signals of kept_out that the mask of a handler on a signal stack lacks. */
static unsigned long missing_in(const struct sigaction *action)
{
    bool on_stack = has_handler(action) && (action->sa_flags & SA_ONSTACK);
    return on_stack ? kept_out & ~action->sa_mask.__val[0] : 0;
}

static bool are_same(const struct sigaction *a, const struct sigaction *b)
{
    return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
           a->sa_mask.__val[0] == b->sa_mask.__val[0];
}

/* Adds kept_out to the mask of an action that the program set before. If another thread sets an
 * action meanwhile, keeps that one and extends its mask. */
static void keep_out_of(int number)
{
    struct sigaction expected, wanted, found;
    if (gt_libc.sigaction(number, NULL, &expected) != 0 || !missing_in(&expected))
        return;
    for (wanted = expected;; wanted = found) {
        unsigned long more = missing_in(&wanted);
        wanted.sa_mask.__val[0] |= more;
        added[number] |= more;
        if (gt_libc.sigaction(number, &wanted, &found) != 0 || are_same(&found, &expected))
            return;
        expected = wanted;
    }
}

void gt_signals_keep_out(int number)
{
    kept_out |= 1ul << (number - 1);
    for (int i = 1; i < _NSIG; i++)
        keep_out_of(i);
}

static void on_toggle(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    GT_KEEP_ERRNO;
    gt_drain_toggle();
}

/* Installs our handler, with SA_RESTART unless the program's own handler wants calls to fail with
 * EINTR. */
static int install(void)
{
    struct sigaction ours = {.sa_sigaction = on_toggle,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (has_handler(&taken.program) && !(taken.program.sa_flags & SA_RESTART))
        ours.sa_flags &= ~SA_RESTART;
    sigfillset(&ours.sa_mask);
    return gt_libc.sigaction(taken.number, &ours, NULL);
}

static void take(int number)
{
    if (gt_libc.sigaction(number, NULL, &taken.program) != 0)
        return;
    taken.number = number;
    if (install() == 0)
        gt_signals_keep_out(number);
    else
        taken.number = 0;
}

/* sigaction(2) for the signal that we took: reads and sets `program`, and keeps our handler. */
static void exchange(const struct sigaction *action, struct sigaction *old)
{
    /* Read before the lock is taken: the program's pointer may be invalid. */
    struct sigaction after = action ? *action : (struct sigaction){0};
    /* Bounded wait: the caller may be a signal handler that interrupted the lock holder. */
    bool locked = gt_lock_within(&taken.lock, GT_RANK_SIGNALS, GT_LOCK_PATIENCE_NS);
    struct sigaction before = taken.program;
    if (action) {
        taken.program = after;
        install();
    }
    if (locked)
        gt_unlock(&taken.lock);
    if (old)
        *old = before;
}

/* What the program does with signals ---------------------------------------------------------- */

static int pass_on(int number, const struct sigaction *action, struct sigaction *old)
{
    return gt_fatal_watches(number) ? gt_fatal_action(number, action, old)
                                    : gt_real.sigaction(number, action, old);
}

/*
 * sigaction(2) for all signals that we did not take. Adds kept_out to the mask of a handler on a
 * signal stack, which has room for the program's handler but not for ours on top of it. The program
 * does not see the added signals.
 */
static int set_other(int number, const struct sigaction *action, struct sigaction *old)
{
    bool valid = number > 0 && number < _NSIG;
    unsigned long before = valid ? added[number] : 0, more = 0;
    struct sigaction alone;
    if (action && (action->sa_flags & SA_ONSTACK)) {
        alone = *action;
        more = kept_out & ~alone.sa_mask.__val[0];
        alone.sa_mask.__val[0] |= more;
        action = &alone;
    }
    int r = pass_on(number, action, old);
    if (r == 0 && action)
        added[number] = more;
    if (r == 0 && old)
        old->sa_mask.__val[0] &= ~before;
    return r;
}

static int set_action(int number, const struct sigaction *action, struct sigaction *old)
{
    if (!is_taken(number))
        return set_other(number, action, old);
    exchange(action, old);
    return 0;
}

/* Whether libc accepts the number. If not, libc's function fails before it reads its arguments. */
static bool is_signal(int number)
{
    return number > 0 && number < NSIG && (number < __SIGRTMIN || number >= SIGRTMIN);
}

GT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return is_signal(number) ? set_action(number, action, old)
                             : gt_real.sigaction(number, action, old);
}

static sighandler_t set_taken(int number, sighandler_t handler)
{
    struct sigaction old, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaddset(&action.sa_mask, number);
    exchange(&action, &old);
    return old.sa_handler;
}

/* Follows libc's signal(3), which decides with siginterrupt(3) about flags and mask: replaces
 * SIG_DFL by our handler, and our handler by SIG_DFL in the result. */
static sighandler_t set_watched(int number, sighandler_t handler, sighandler_t before)
{
    static const struct sigaction by_default = {.sa_handler = SIG_DFL};
    if (before != SIG_ERR && handler == SIG_DFL)
        gt_fatal_action(number, &by_default, NULL);
    return gt_fatal_is_ours(before) ? SIG_DFL : before;
}

#define SIGNAL(name)                                                                     \
    GT_EXPORT sighandler_t name(int number, sighandler_t handler)                        \
    {                                                                                    \
        if (is_taken(number) && handler != SIG_ERR)                                      \
            return set_taken(number, handler);                                           \
        sighandler_t before = gt_real.name(number, handler);                             \
        return gt_fatal_watches(number) ? set_watched(number, handler, before) : before; \
    }

SIGNAL(signal)
SIGNAL(ssignal)
SIGNAL(bsd_signal)
SIGNAL(sysv_signal)
SIGNAL(__sysv_signal)

/*
 * The set without the signal that we took, which is never blocked. If it were, the signal would
 * stay pending until a thread took it with sigwait, or until a call unblocked it while it waits.
 */
static const sigset_t *without_taken(const sigset_t *set, sigset_t *ours)
{
    *ours = *set;
    sigdelset(ours, taken.number);
    return ours;
}

#define MASK(name)                                                          \
    GT_EXPORT int name(int how, const sigset_t *set, sigset_t *old)         \
    {                                                                       \
        sigset_t ours;                                                      \
        if (__builtin_expect(taken.number && set && how != SIG_UNBLOCK, 0)) \
            set = without_taken(set, &ours);                                \
        return gt_real.name(how, set, old);                                 \
    }

MASK(sigprocmask)
MASK(pthread_sigmask)

void gt_signals_after_fork(void)
{
    taken.lock = (struct gt_lock){0};
}

void gt_signals_init(void)
{
    if (gt_options.signal)
        take(gt_options.signal);
}
