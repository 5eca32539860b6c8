/* See fatal.h. */
#include "fatal.h"

#include "process_state.h"

#include "encoder/base/arena.h"
#include "encoder/base/futex.h"
#include "preload/bind/real.h"

#define STACK_BYTES (1u << 20)

/* How long threads that die meanwhile wait for the first dying thread, which gives up earlier. */
#define PATIENCE_NS 25000000000

/*
 * The deadly signals. After a fault our handler returns to the instruction, which faults again; all
 * other signals the handler sends again.
 *
 * SIGSYS and the real-time signals are left out. A filter that sends SIGSYS may also send it for a
 * system call of our handler; then the process would end there and not at the call that was
 * refused. The 31 real-time signals would cost each process 62 system calls at its start, and
 * hardly any process ends by them.
 */
static const struct {
    int number;
    bool fault;
} signals[] = {
    {SIGSEGV, true},    {SIGBUS, true},   {SIGFPE, true},   {SIGILL, true},     {SIGABRT, false},
    {SIGTERM, false},   {SIGINT, false},  {SIGHUP, false},  {SIGQUIT, false},   {SIGPIPE, false},
    {SIGALRM, false},   {SIGUSR1, false}, {SIGUSR2, false}, {SIGVTALRM, false}, {SIGPROF, false},
    {SIGXCPU, false},   {SIGXFSZ, false}, {SIGIO, false},   {SIGPWR, false},    {SIGTRAP, false},
    {SIGSTKFLT, false},
};

enum { SIGNALS = sizeof signals / sizeof *signals };

static struct {
    bool on, forbidden;
    void (*save)(void);
    void *stack; /* our own: the thread's stack or signal stack may be small or exhausted */
    ucontext_t here, there;
    _Atomic uint32_t first, done; /* first: the thread that saves; 0: no signal has come yet */
} fatal;

static void save_on_our_stack(void)
{
    getcontext(&fatal.there);
    fatal.there.uc_stack.ss_sp = fatal.stack;
    fatal.there.uc_stack.ss_size = STACK_BYTES;
    fatal.there.uc_link = &fatal.here;
    makecontext(&fatal.there, fatal.save, 0);
    swapcontext(&fatal.here, &fatal.there);
    atomic_store(&fatal.done, 1);
    gt_futex_wake(&fatal.done, INT_MAX);
}

/* Whether the thread itself caused the fault, so that the fault comes again. SI_KERNEL: the kernel
 * had no room for a handler. */
static bool is_fault(int number, const siginfo_t *info)
{
    if (info->si_code == SI_KERNEL || (number == SIGBUS && info->si_code == BUS_MCEERR_AO))
        return false;
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i].number == number)
            return signals[i].fault && info->si_code > 0; /* not by kill(2) or raise(3) */
    }
    return false;
}

/* Makes the default action take place once our handler returns. If a seccomp filter forbids that,
 * ends the process. */
static void die_after_return(int number, siginfo_t *info)
{
    enum { SHELLS = 128 };
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    long pid = gt_syscall(SYS_getpid), tid = gt_syscall(SYS_gettid);
    if (gt_libc.sigaction(number, &by_default, NULL) != 0)
        gt_syscall(SYS_exit_group, SHELLS + number);
    if (!is_fault(number, info) && gt_syscall(SYS_rt_tgsigqueueinfo, pid, tid, number, info) != 0)
        gt_syscall(SYS_tgkill, pid, tid, number); /* only the main thread may forge si_code */
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
    (void)context;
    GT_KEEP_ERRNO;
    uint32_t nobody = 0;
    if (!gt_process_is_ours())
        ; /* a vfork child, which runs in our memory */
    else if (atomic_compare_exchange_strong(&fatal.first, &nobody,
                                            (uint32_t)gt_syscall(SYS_gettid)))
        save_on_our_stack();
    else if (!atomic_load(&fatal.done))
        gt_futex_wait(&fatal.done, 0, PATIENCE_NS);
    die_after_return(number, info);
}

/*
 * Our action. Its mask also contains libc's own signals, which sigfillset leaves out: the sampler
 * uses one of them. While our handler runs on our own stack, the kernel believes that the thread's
 * signal stack is free, and the next handler there would overwrite our handler's frame.
 */
static struct sigaction ours(void)
{
    struct sigaction action = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
    return action;
}

bool gt_fatal_has_ended(uint32_t tid)
{
    return atomic_load(&fatal.first) == tid;
}

/* The program may set our handler itself: functions without a hook of ours may have shown it our
 * handler as its own. */
bool gt_fatal_is_ours(sighandler_t handler)
{
    return handler == (sighandler_t)(void *)on_fatal;
}

static bool is_default(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL || gt_fatal_is_ours(action->sa_handler);
}

bool gt_fatal_watches(int number)
{
    for (int i = 0; fatal.on && i < SIGNALS; i++) {
        if (signals[i].number == number)
            return true;
    }
    return false;
}

int gt_fatal_action(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction handler = ours(), before;
    int r = gt_real.sigaction(number, action && is_default(action) ? &handler : action, &before);
    if (r != 0 || !old)
        return r;
    *old = before;
    if (gt_fatal_is_ours(before.sa_handler))
        *old = (struct sigaction){.sa_handler = SIG_DFL};
    return r;
}

static void end(void)
{
    struct sigaction now, by_default = {.sa_handler = SIG_DFL};
    for (int i = 0; fatal.on && i < SIGNALS; i++) {
        if (gt_libc.sigaction(signals[i].number, NULL, &now) == 0 &&
            gt_fatal_is_ours(now.sa_handler))
            gt_libc.sigaction(signals[i].number, &by_default, NULL);
    }
    fatal.on = false;
}

void gt_fatal_forbid(void)
{
    end();
    fatal.forbidden = true;
}

/* The first process of a container outlives the signals whose default action ends other processes.
 */
static bool is_first_process(void)
{
    return gt_syscall(SYS_getpid) == 1;
}

void gt_fatal_after_fork(void)
{
    fatal.first = fatal.done = 0;
    if (is_first_process())
        end();
}

void gt_fatal_init(void (*save)(void))
{
    if (fatal.on || fatal.forbidden || is_first_process())
        return;
    fatal.save = save;
    fatal.stack = gt_pages_alloc(STACK_BYTES);
    fatal.on = fatal.stack != NULL;
    for (int i = 0; fatal.on && i < SIGNALS; i++) {
        struct sigaction now;
        if (gt_libc.sigaction(signals[i].number, NULL, &now) == 0 && is_default(&now))
            gt_fatal_action(signals[i].number, &now, NULL);
    }
}
