/*
 * Signals that the tracer handles. The one of GOTRACE_SIGNAL is the user's word to us: the program
 * may set and ask for its action as ever, but does not get it.
 */
#include "signals.h"

#include "fatal.h"
#include "options.h"
#include "real.h"

#include "../encoder/drain.h"
#include "../encoder/futex.h"

#include <errno.h>
#include <signal.h>

static int toggle;                      /* 0: none is ours */
static struct sigaction program_action; /* for it: what the program believes */
static struct gt_lock lock;

static void on_toggle(int signal)
{
    (void)signal;
    int saved = errno;
    gt_drain_toggle();
    errno = saved;
}

static void exchange(const struct sigaction *action, struct sigaction *old)
{
    /* Patience, not more: the holder may be what this signal handler interrupted. */
    bool locked = gt_lock_within(&lock, GT_LOCK_PATIENCE_NS);
    struct sigaction before = program_action;
    if (action)
        program_action = *action;
    if (locked)
        gt_unlock(&lock);
    if (old)
        *old = before;
}

void gt_signals_init(void)
{
    struct sigaction ours = {.sa_handler = on_toggle, .sa_flags = SA_RESTART | SA_ONSTACK};
    if (gt_options.signal && gt_real.sigaction(gt_options.signal, &ours, &program_action) == 0)
        toggle = gt_options.signal;
    if (gt_options.ring_bytes)
        gt_fatal_init();
}

GT_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (gt_fatal_watches(number))
        return gt_fatal_action(number, action, old);
    if (__builtin_expect(!toggle || number != toggle, 1))
        return gt_real.sigaction(number, action, old);
    exchange(action, old);
    return 0;
}

GT_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    bool fatal = gt_fatal_watches(number);
    if (__builtin_expect((!fatal && (!toggle || number != toggle)) || handler == SIG_ERR, 1))
        return gt_real.signal(number, handler);
    sigaddset(&action.sa_mask, number);
    if (!fatal)
        exchange(&action, &old);
    else if (gt_fatal_action(number, &action, &old) != 0)
        return SIG_ERR;
    return old.sa_handler;
}
