/* See process_relief.h. */
#include "process_relief.h"

#include "control.h"

#include "encoder/base/log.h"
#include "encoder/base/urgent.h"
#include "encoder/drain/drain.h"
#include "encoder/file/output.h"
#include "preload/bind/nursery.h"
#include "preload/bind/real.h"
#include "preload/process/process_names.h"
#include "preload/process/process_state.h"
#include "preload/thread/capture.h"
#include "preload/thread/heap_slots.h"

bool gt_process_is_anywhere(struct gt_thread *t)
{
    return _r_debug.r_state != RT_CONSISTENT || gt_capture_in_handler(t);
}

/* Serves control requests in a single-threaded child. It is not followed until it makes another
 * thread or a request starts recording. */
static void serve_unfollowed(void)
{
    atomic_fetch_and(&gt_drain_unattended, ~(uint32_t)GT_UNATTENDED_WORK);
    if (atomic_load(&gt_process.ended) || atomic_exchange(&gt_process.serving, 1))
        return;
    GT_OWN_WORK(own);
    gt_control_serve();
    atomic_store(&gt_process.serving, 0);
}

void gt_process_act(struct gt_thread *t, void (*what)(struct gt_thread *t))
{
    GT_OWN_WORK(own);
    gt_nursery_only = true;
    what(t);
    gt_nursery_only = false;
    gt_thread_leave(t);
}

static void attend(struct gt_thread *t)
{
    if (!gt_process_is_anywhere(t))
        gt_drain_attend();
}

void gt_process_hold_no_longer(void)
{
    atomic_store(&gt_process.leaver, 0);
    atomic_store(&gt_process.holds_until, gt_clock_monotonic_raw());
}

static _Atomic bool by_clock;

void gt_process_hold_by_clock(void)
{
    atomic_store(&by_clock, true);
}

uint64_t gt_process_cpu_of(uint32_t tid)
{
    struct timespec ts = {0};
    if (atomic_load(&by_clock))
        return 0;
    gt_syscall(SYS_clock_gettime, (unsigned long)(uint32_t)gt_clock_of_thread(tid), &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

enum { STEP_NS = 10000000 };

/* Whether threads are held at this time. The hold lasts on while the thread that ends the process
 * is ready to run and has hardly run. */
static bool is_held(void)
{
    uint64_t until = atomic_load(&gt_process.holds_until), now = gt_clock_monotonic_raw();
    uint32_t leaver = atomic_load(&gt_process.leaver);
    if (now < until || !leaver || atomic_load(&by_clock))
        return now < until;
    bool waits_for_cpu = now < gt_process.leaves_latest && gt_thread_state(leaver) == 'R' &&
                         gt_process_cpu_of(leaver) < gt_process.leaves_cpu;
    if (waits_for_cpu)
        atomic_compare_exchange_strong(&gt_process.holds_until, &until, now + STEP_NS);
    else
        gt_process_hold_no_longer();
    return waits_for_cpu;
}

/*
 * A thread whose `inside` is set is not held unless it is stuck: the one that ends the process, the
 * drain thread, or one with a signal handler that has interrupted our code, for which the end may
 * wait. The one that ends the process gets here in a destructor behind ours, and may wait for a
 * held thread. The reader of a FIFO to which the trace goes may be a held thread, too, or wait for
 * one: the hold ends when nothing could be written for STANDS_NS. Each sleep is short, and no
 * thread is woken from it: threads that went on together would be more likely to run before the
 * process is gone.
 */
void gt_process_hold(void)
{
    enum { STANDS_NS = 200000000 };
    GT_KEEP_ERRNO;
    const struct gt_thread *t = gt_self;
    if (!atomic_load(&gt_process.holds_until) || !gt_process_is_ours())
        return;
    if (t && t->inside && (!t->stuck || t->inside == GT_INSIDE_FOR_GOOD)) {
        bool leaves = atomic_load(&gt_process.leaver);
        if (leaves && t != &gt_nobody && t->inside == GT_INSIDE_FOR_GOOD)
            gt_process_hold_no_longer();
        return;
    }
    while (is_held()) {
        if (gt_output_stands_ns() > STANDS_NS)
            gt_process_hold_no_longer();
        else
            gt_futex_wait(&gt_process.ended, atomic_load(&gt_process.ended), STEP_NS);
    }
}

void gt_process_attend(void)
{
    struct gt_thread *t = gt_self;
    gt_process_hold();
    if (atomic_load(&gt_process.holds_until) || atomic_load(&gt_process.ended))
        return; /* what is left to do, the thread that ends the process does */
    if (!t || t->frame || !gt_process_is_ours())
        return;
    if (!gt_process.exiting)
        gt_log_let_go();
    if (!gt_recording() && !gt_process_is_anywhere(t))
        serve_unfollowed();
    if ((t = gt_thread_enter()))
        gt_process_act(t, attend);
}

static void relieve(struct gt_thread *t)
{
    bool anywhere = gt_process_is_anywhere(t);
    gt_names_roughly(anywhere);
    gt_drain_relieve(anywhere);
    gt_names_roughly(false);
}

void gt_process_relieve(void)
{
    struct gt_thread *t;
    if (atomic_load(&gt_process.drain_started) == GT_DRAIN_WITH_THREAD || gt_process_has_ended())
        return;
    if ((t = gt_thread_enter()))
        gt_process_act(t, relieve);
}

void gt_process_wait_for_memory(void)
{
    GT_KEEP_ERRNO;
    if (gt_drain_is_threaded() && gt_urgent())
        gt_urgent_lend();
    else if (gt_drain_is_threaded())
        gt_era_wait();
}
