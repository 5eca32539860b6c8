/* See sampler.h. */
#include "sampler.h"

#include "libc_signal.h"
#include "options.h"
#include "signals.h"
#include "thread.h"

#include "encoder/base/log.h"
#include "preload/stacks/capture.h"
#include "preload/stacks/layouts.h"
#include "symbolize/modules.h"

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
        if (t && t != &gt_nobody && t->sampler.running)
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
        gt_log("no CPU samples of some threads: %s", strerrordesc_np(errno));
}

static bool set_timer(const struct gt_thread *t, bool runs)
{
    uint64_t ns = runs ? 1000000000 / gt_options.cpu_hz : 0;
    struct timespec period = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    struct itimerspec every = {period, period};
    return gt_syscall(SYS_timer_settime, t->sampler.timer, 0, &every, NULL) == 0;
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
    t->sampler.running = false;
    gt_libc_signal_retake();
    if (!on || !has_ring(&t->sampler))
        return;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = GT_LIBC_SIGNAL,
                             .sigev_value.sival_ptr = &on,
                             ._sigev_un._tid = (pid_t)t->w.m};
    GT_KEEP_ERRNO;
    if (gt_syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &t->sampler.timer) == 0)
        t->sampler.running = set_timer(t, has_room());
    if (!t->sampler.running)
        say_failed();
}

/* Once: its number may be that of another timer next. */
static void end(struct gt_sampler *s)
{
    if (atomic_exchange(&s->running, false))
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
    const struct gt_thread *t = gt_self;
    if (__builtin_expect(!on || !stack || !t || !t->sampler.running, 1) ||
        !gt_can_read(stack, sizeof *stack))
        return gt_real.sigaltstack(stack, old);
    bool had_room = has_room(), small = too_small(stack);
    if (small) /* none of this thread from now on */
        set_timer(t, false);
    int r = gt_real.sigaltstack(stack, old);
    GT_KEEP_ERRNO;
    /* One that runs goes on: set anew, its period would begin anew. */
    if (small ? had_room && r != 0 : !had_room && r == 0)
        set_timer(t, true);
    return r;
}
