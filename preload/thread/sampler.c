/* See sampler.h. */
#include "sampler.h"

#include "capture.h"
#include "thread.h"

#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/cpu/samples.h"
#include "encoder/thread/switch.h"
#include "preload/bind/real.h"
#include "preload/process/libc_signal.h"
#include "preload/process/signals.h"
#include "preload/shared/options.h"
#include "preload/stacks/code_layouts.h"
#include "preload/stacks/python_stack.h"
#include "symbolize/elf/modules.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

static _Atomic uint32_t hz;  /* rate of all timers; 0: there are none */
static uint32_t hz_at_start; /* the rate of GOTRACE_CPU_HZ; 0: none, or not possible */
static _Atomic bool forbidden;
static char mark; /* our timers send its address */

/* Takes a sample. All signals are blocked; t's thread was interrupted in any code, perhaps ours. */
static void take(struct gt_thread *t, void *context, uint32_t times)
{
    struct gt_sample_ring *ring = atomic_load(&t->sampler.ring);
    const struct gt_p *p = t->w.p;
    if (!gt_recording() || gt_muted() || !p)
        return;
    struct gt_sample s = {.ts = gt_clock_now(),
                          .g = t->w.g.id,
                          .m = t->w.m,
                          .p = p->id,
                          .cpu = (uint32_t)sched_getcpu(),
                          .epoch = (uint32_t)gt_modules_epoch(),
                          .times = times};
    s.n = gt_capture_interrupted(t, s.epoch, context, ring->pcs, ring->native, ring->sp);
    atomic_store(&t->sampler.ring, gt_samples_put(ring, &s));
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    GT_KEEP_ERRNO;
    struct gt_thread *t = gt_self;
    /* After the thread has ended in the trace its timer is gone, but a signal may be pending. */
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == &mark) {
        if (t && t != &gt_nobody && atomic_load(&t->sampler.state))
            take(t, context, 1 + (uint32_t)info->si_overrun);
    } else {
        gt_libc_signal_forward(signal, info, context);
    }
}

static bool kernel_is_new(void)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 10));
}

static const char *missing(void)
{
    if (!gt_capture_walks())
        return "stacks can be walked; see gotrace-limits(7)";
    if (!kernel_is_new())
        return "Linux is 5.10 or later";
    if (gt_options.format->v1 && !gt_v1_has(gt_options.format, GT_V1_CPU_SAMPLE))
        return "the format is go1.19 or later";
    if (atomic_load(&forbidden))
        return "the program's own seccomp(2) filter allows them";
    return NULL;
}

const char *gt_sampler_prepare(void)
{
    static bool prepared;
    const char *why = missing();
    if (why || prepared)
        return why;
    if (!gt_libc_signal_take(on_signal))
        return "libc has a signal of its own";
    gt_signals_keep_out(GT_LIBC_SIGNAL);
    prepared = true;
    return NULL;
}

void gt_sampler_init(void)
{
    if (!gt_options.cpu_hz)
        return;
    const char *why = gt_sampler_prepare();
    hz_at_start = why ? 0 : gt_options.cpu_hz;
    atomic_store(&hz, hz_at_start);
    if (why)
        gt_log_note("GOTRACE_CPU_HZ: there are only CPU samples where %s", why);
}

/* Says once that a timer could not be made: each timer takes one of RLIMIT_SIGPENDING. */
static void say_failed(void)
{
    static _Atomic bool said;
    if (!atomic_exchange(&said, true))
        gt_log("no timers for CPU samples of some threads: %s", gt_libc_error(errno));
}

static uint64_t period_ns(void)
{
    uint32_t n = atomic_load(&hz);
    return n ? 1000000000 / n : 0;
}

/*
 * A sampler's state holds the goroutine, its timer, and the reasons why the timer is stopped:
 * - SMALL: the signal stack has no room; set by the thread itself.
 * - COPIED: samples are taken by copies of stacks; set by the drain side.
 * A thread that changes the reasons sets the timer, and sets it again if the state has changed
 * meanwhile, so that the last change prevails. The kernel does not reuse a timer's number soon.
 *
 * Both a thread that begins and the drain side, when it switches sampling on, may make the thread's
 * timer. The thread stores LIVE, then reads hz; the drain side stores hz, then reads LIVE. So at
 * least one of them makes it. The timer belongs to the thread once its number is in the state; the
 * slower one of the two deletes its own timer.
 */
enum {
    LIVE = 1, /* a traced thread uses the sampler */
    SMALL = 2,
    COPIED = 4,
    REASONS = SMALL | COPIED,
    TIMED = 8,
    TIMER_SHIFT = 4, /* 31 bits */
    G_SHIFT = 35
};
#define TIMER_MASK ((uint64_t)INT_MAX << TIMER_SHIFT)

static uint64_t state_of(uint64_t g)
{
    return g << G_SHIFT | LIVE;
}

static bool is_of(uint64_t state, uint64_t g)
{
    return (state >> G_SHIFT << G_SHIFT | (state & LIVE)) == state_of(g);
}

static int timer_of(uint64_t state)
{
    return (int)((state & TIMER_MASK) >> TIMER_SHIFT);
}

static void set_timer(int timer, bool runs)
{
    uint64_t ns = runs ? period_ns() : 0;
    struct timespec period = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    struct itimerspec every = {period, period};
    gt_syscall(SYS_timer_settime, timer, 0, &every, NULL);
}

static void apply(struct gt_sampler *s)
{
    uint64_t state;
    do {
        state = atomic_load(&s->state);
        if (state & TIMED)
            set_timer(timer_of(state), !(state & REASONS));
    } while (atomic_load(&s->state) != state);
}

/* Sets (stands) or clears a reason to stop the timer, if the sampler still belongs to goroutine g.
 * Whether the timer ran. */
static bool stand(struct gt_sampler *s, uint64_t g, uint64_t reason, bool stands)
{
    uint64_t state = atomic_load(&s->state), next;
    do {
        next = stands ? state | reason : state & ~reason;
        if (!is_of(state, g))
            return false;
    } while (!atomic_compare_exchange_strong(&s->state, &state, next));
    if (next != state)
        apply(s);
    return (state & TIMED) && !(state & REASONS);
}

static bool has_ring(struct gt_sampler *s)
{
    struct gt_sample_ring *none = NULL, *ring;
    if (atomic_load(&s->ring))
        return true;
    ring = gt_samples_ring();
    return ring && (atomic_compare_exchange_strong(&s->ring, &none, ring) || none);
}

/* Deletes the timer exactly once: its number may be another timer's afterwards. */
static void drop_timer(struct gt_sampler *s)
{
    uint64_t state = atomic_load(&s->state);
    while (state & TIMED) {
        if (atomic_compare_exchange_weak(&s->state, &state, state & ~(TIMED | TIMER_MASK))) {
            gt_syscall(SYS_timer_delete, timer_of(state));
            return;
        }
    }
}

/* Stores the timer of goroutine g. false: the goroutine has ended, or has another timer. */
static bool give_timer(struct gt_sampler *s, uint64_t g, int timer)
{
    uint64_t state = atomic_load(&s->state);
    do {
        if (!is_of(state, g) || (state & TIMED))
            return false;
    } while (!atomic_compare_exchange_weak(&s->state, &state,
                                           state | TIMED | (uint64_t)timer << TIMER_SHIFT));
    apply(s);
    if (!atomic_load(&hz))
        drop_timer(s);
    return true;
}

/* The clock that counts CPU time of a thread of this process: MAKE_THREAD_CPUCLOCK in the kernel.
 */
static clockid_t cpu_clock(uint32_t tid)
{
    return (clockid_t)(~tid << 3 | 6);
}

/* Makes a timer for goroutine g, unless it has ended. */
static void make_timer(struct gt_sampler *s, uint64_t g, uint32_t tid)
{
    int timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = GT_LIBC_SIGNAL,
                             .sigev_value.sival_ptr = &mark,
                             ._sigev_un._tid = (pid_t)tid};
    if (!has_ring(s))
        return;
    if (gt_syscall(SYS_timer_create, cpu_clock(tid), &event, &timer) == 0) {
        if (!give_timer(s, g, timer))
            gt_syscall(SYS_timer_delete, timer);
    } else if (errno != EINVAL) { /* EINVAL: the thread has ended */
        say_failed();
    }
}

/* Threads ------------------------------------------------------------------------------------ */

/* Whether our handler does not fit: it runs on the program's signal stack, because Go's threads
 * have no room on their other stacks. */
static bool too_small(const stack_t *stack)
{
    enum { ROOM = 4096 };
    return !(stack->ss_flags & SS_DISABLE) && stack->ss_size < getauxval(AT_MINSIGSTKSZ) + ROOM;
}

static bool has_room(void)
{
    stack_t now;
    return gt_libc.sigaltstack(NULL, &now) == 0 && !too_small(&now);
}

void gt_sampler_thread_begin(struct gt_thread *t, bool fresh)
{
    GT_KEEP_ERRNO;
    struct gt_sampler *s = &t->sampler;
    bool room = fresh || has_room();
    gt_libc_signal_retake();
    atomic_store(&s->state, state_of(t->w.g.id) | (room ? 0 : SMALL));
    if (atomic_load(&hz))
        make_timer(s, t->w.g.id, t->w.m);
}

void gt_sampler_thread_end(struct gt_thread *t)
{
    uint64_t state = atomic_exchange(&t->sampler.state, 0);
    if (state & TIMED)
        gt_syscall(SYS_timer_delete, timer_of(state));
}

static void begin_timer(void *unused, struct gt_writer *w)
{
    (void)unused;
    struct gt_sampler *s = &gt_thread_of(w)->sampler;
    uint64_t state = atomic_load(&s->state); /* before w->m: another thread may reuse the struct */
    if (state)
        make_timer(s, state >> G_SHIFT, w->m);
}

static void end_timer(void *unused, struct gt_writer *w)
{
    (void)unused;
    drop_timer(&gt_thread_of(w)->sampler);
}

void gt_sampler_switch(uint32_t n)
{
    atomic_store(&hz, 0);
    gt_switch_each(end_timer, NULL);
    atomic_store(&hz, n);
    if (atomic_load(&forbidden)) /* set since gt_sampler_prepare */
        atomic_store(&hz, 0);
    if (atomic_load(&hz))
        gt_switch_each(begin_timer, NULL);
}

void gt_sampler_forbid(void)
{
    atomic_store(&forbidden, true);
}

void gt_sampler_end(void)
{
    gt_sampler_forbid();
    gt_sampler_switch(0);
}

static void doubt(void *unused, struct gt_writer *w)
{
    (void)unused;
    struct gt_sampler *s = &gt_thread_of(w)->sampler;
    stand(s, atomic_load(&s->state) >> G_SHIFT, SMALL, true);
}

void gt_sampler_doubt_stacks(void)
{
    gt_switch_each(doubt, NULL);
}

void gt_sampler_after_fork(void)
{
    atomic_store(&hz, hz_at_start);
}

/* sigaltstack(2) in a thread without timer: a timer that is made meanwhile is stopped. */
static int set_stack_untimed(struct gt_thread *t, const stack_t *stack, stack_t *old)
{
    stand(&t->sampler, t->w.g.id, SMALL, true);
    int r = gt_real.sigaltstack(stack, old);
    GT_KEEP_ERRNO;
    if (has_room())
        stand(&t->sampler, t->w.g.id, SMALL, false);
    return r;
}

/* sigaltstack(2) in a thread with a timer. Does not stop the timer without need: a timer that is
 * restarted each time might never expire. */
static int set_stack_timed(struct gt_thread *t, const stack_t *stack, stack_t *old)
{
    bool had_room = has_room(), small = too_small(stack);
    if (small) /* no samples of this thread from now on */
        stand(&t->sampler, t->w.g.id, SMALL, true);
    int r = gt_real.sigaltstack(stack, old);
    GT_KEEP_ERRNO;
    if (small ? had_room && r != 0 : r == 0)
        stand(&t->sampler, t->w.g.id, SMALL, false);
    return r;
}

GT_EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
    struct gt_thread *t = gt_self;
    uint64_t state = stack && t ? atomic_load(&t->sampler.state) : 0;
    if (__builtin_expect(!state, 1))
        return gt_real.sigaltstack(stack, old);
    if (!(state & TIMED) || !gt_can_read(stack, sizeof *stack))
        return set_stack_untimed(t, stack, old);
    return set_stack_timed(t, stack, old);
}

/* By copies of stacks ------------------------------------------------------------------------ */

uint32_t gt_sampler_hz(void)
{
    return atomic_load(&hz);
}

uint32_t gt_sampler_walk(const struct gt_perf_sample *sample, bool callers, uint64_t *pcs,
                         uint32_t *epoch, bool *cut)
{
    *epoch = (uint32_t)gt_modules_epoch();
    *cut = false;
    if (callers) {
        uint32_t n =
            gt_unwind_copy(&sample->registers, sample->stack, sample->bytes, *epoch, pcs, cut);
        *cut |= gt_python_runs && gt_python_has(pcs, n); /* only the thread itself can walk these */
        return n;
    }
    pcs[0] = sample->registers.pc;
    return pcs[0] != 0;
}

/* Whether more than half of the time between two samples has passed. */
static bool is_late(const struct gt_sampler *s)
{
    struct itimerspec left;
    uint64_t state = atomic_load(&s->state);
    if (!(state & TIMED) || gt_syscall(SYS_timer_gettime, timer_of(state), &left) != 0)
        return false;
    uint64_t ns = (uint64_t)left.it_value.tv_sec * 1000000000 + (uint64_t)left.it_value.tv_nsec;
    return ns < period_ns() / 2;
}

bool gt_sampler_by_copy(struct gt_writer *w, uint64_t g, bool copied)
{
    struct gt_sampler *s = &gt_thread_of(w)->sampler;
    bool late = copied && is_late(s);
    return stand(s, g, COPIED, copied) && late;
}
