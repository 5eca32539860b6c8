/* See sampler.h. */
#include "sampler.h"

#include "libc_signal.h"
#include "options.h"
#include "signals.h"
#include "thread.h"

#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "preload/stacks/capture.h"
#include "preload/stacks/layouts.h"
#include "symbolize/modules.h"

#include <sched.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

static bool on;                               /* there are samples */
static _Atomic(struct gt_sampler *) samplers; /* push only */

/* All signals are blocked; t's thread may have been anywhere, also in our own code. */
static void take(struct gt_thread *t, void *context, uint32_t times)
{
    struct gt_sample_ring *ring = t->sampler.ring;
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
    s.n = gt_unwind_context(&t->trail, s.epoch, context, ring->pcs);
    t->sampler.ring = gt_samples_put(ring, &s);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    GT_KEEP_ERRNO;
    struct gt_thread *t = gt_self;
    /* Behind the time of this thread's end the timer is gone, but not what it had sent. */
    if (info->si_code == SI_TIMER && info->si_value.sival_ptr == (void *)&on) {
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
        return "stacks can be walked; see the README";
    if (!kernel_is_new())
        return "Linux is 5.10 or later";
    if (gt_options.format->v1 && !gt_v1_has(gt_options.format, GT_V1_CPU_SAMPLE))
        return "the format is go1.19 or later";
    return NULL;
}

void gt_sampler_init(void)
{
    if (!gt_options.cpu_hz)
        return;
    const char *why = missing();
    if (!why && !gt_libc_signal_take(on_signal))
        why = "libc has a signal of its own";
    on = !why;
    if (on)
        gt_signals_keep_out(GT_LIBC_SIGNAL);
    else
        gt_log("GOTRACE_CPU_HZ: there are only CPU samples where %s", why);
}

/* Each timer takes one of RLIMIT_SIGPENDING. */
static void say_failed(void)
{
    static _Atomic bool said;
    if (!atomic_exchange(&said, true))
        gt_log("no timers for CPU samples of some threads: %s", gt_libc_error(errno));
}

static uint64_t period_ns(void)
{
    return 1000000000 / gt_options.cpu_hz;
}

static void set_timer(int timer, bool runs)
{
    uint64_t ns = runs ? period_ns() : 0;
    struct timespec period = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    struct itimerspec every = {period, period};
    gt_syscall(SYS_timer_settime, timer, 0, &every, NULL);
}

/*
 * Why a timer stands: no room on the signal stack, as its own thread says; samples by copies of
 * stacks, as the drain side does. Whoever changes that sets the timer, and again if it has changed
 * meanwhile: the last one's is what holds. The kernel does not use a timer's number again soon.
 */
enum { SMALL = 1, COPIED = 2, REASONS = 3, REASON_BITS = 2 };

static void apply(struct gt_sampler *s)
{
    uint64_t state;
    do {
        state = atomic_load(&s->state);
        if (state)
            set_timer(s->timer, !(state & REASONS));
    } while (atomic_load(&s->state) != state);
}

/* Of thread g, if it still is that. Whether the timer ran. */
static bool stand(struct gt_sampler *s, uint64_t g, uint64_t reason, bool stands)
{
    uint64_t state = atomic_load(&s->state), next;
    do {
        next = stands ? state | reason : state & ~reason;
        if (state >> REASON_BITS != g || !state)
            return false;
    } while (!atomic_compare_exchange_strong(&s->state, &state, next));
    if (next != state)
        apply(s);
    return !(state & REASONS);
}

/* Our handler runs on the program's signal stack, because Go's threads have no other to spare. */
static bool too_small(const stack_t *stack)
{
    enum { ROOM = 4096 };
    return !(stack->ss_flags & SS_DISABLE) && stack->ss_size < getauxval(AT_MINSIGSTKSZ) + ROOM;
}

static bool has_room(void)
{
    stack_t now;
    return gt_real.sigaltstack(NULL, &now) == 0 && !too_small(&now);
}

static bool has_ring(struct gt_sampler *s)
{
    if (s->ring)
        return true;
    s->ring = gt_samples_ring();
    if (!s->ring)
        return false;
    s->next = atomic_load_explicit(&samplers, memory_order_relaxed);
    /* release: pairs with gt_sampler_end */
    while (!atomic_compare_exchange_weak_explicit(&samplers, &s->next, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return true;
}

void gt_sampler_thread_begin(struct gt_thread *t)
{
    struct gt_sampler *s = &t->sampler;
    atomic_store(&s->state, 0);
    gt_libc_signal_retake();
    if (!on || !has_ring(s))
        return;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = GT_LIBC_SIGNAL,
                             .sigev_value.sival_ptr = &on,
                             ._sigev_un._tid = (pid_t)t->w.m};
    GT_KEEP_ERRNO;
    if (gt_syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &s->timer) != 0) {
        say_failed();
        return;
    }
    bool room = has_room();
    atomic_store(&s->state, t->w.g.id << REASON_BITS | (room ? 0 : SMALL));
    apply(s);
}

/* Once: its number may be that of another timer next. */
static void end(struct gt_sampler *s)
{
    if (atomic_exchange(&s->state, 0))
        gt_syscall(SYS_timer_delete, s->timer);
}

void gt_sampler_thread_end(struct gt_thread *t)
{
    end(&t->sampler);
}

void gt_sampler_end(void)
{
    /* acquire: pairs with has_ring */
    struct gt_sampler *s = atomic_load_explicit(&samplers, memory_order_acquire);
    for (; s; s = s->next)
        end(s);
}

void gt_sampler_after_fork(void)
{
    atomic_store(&samplers, NULL);
}

GT_EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
    struct gt_thread *t = gt_self;
    uint64_t state = on && stack && t ? atomic_load(&t->sampler.state) : 0;
    if (__builtin_expect(!state, 1) || !gt_can_read(stack, sizeof *stack))
        return gt_real.sigaltstack(stack, old);
    bool had_room = has_room(), small = too_small(stack);
    if (small) /* none of this thread from now on */
        stand(&t->sampler, state >> REASON_BITS, SMALL, true);
    int r = gt_real.sigaltstack(stack, old);
    GT_KEEP_ERRNO;
    if (small ? had_room && r != 0 : r == 0)
        stand(&t->sampler, state >> REASON_BITS, SMALL, false);
    return r;
}

/* By copies of stacks ------------------------------------------------------------------------ */

uint32_t gt_sampler_hz(void)
{
    return on ? gt_options.cpu_hz : 0;
}

uint32_t gt_sampler_walk(const struct gt_perf_sample *sample, bool callers, uint64_t *pcs,
                         uint32_t *epoch, bool *cut)
{
    *epoch = (uint32_t)gt_modules_epoch();
    *cut = false;
    if (callers)
        return gt_unwind_copy(&sample->registers, sample->stack, sample->bytes, *epoch, pcs, cut);
    pcs[0] = sample->registers.pc;
    return pcs[0] != 0;
}

/* Of the time between two samples, whether more than half is over. */
static bool is_late(int timer)
{
    struct itimerspec left;
    if (gt_syscall(SYS_timer_gettime, timer, &left) != 0)
        return false;
    uint64_t ns = (uint64_t)left.it_value.tv_sec * 1000000000 + (uint64_t)left.it_value.tv_nsec;
    return ns < period_ns() / 2;
}

bool gt_sampler_by_copy(struct gt_writer *w, uint64_t g, bool copied)
{
    struct gt_sampler *s = &gt_thread_of(w)->sampler;
    bool late = copied && is_late(s->timer);
    return stand(s, g, COPIED, copied) && late;
}
