/* See yield.h. */
#include "yield.h"

#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "preload/control/process_relief.h"
#include "preload/shared/options.h"
#include "preload/thread/capture.h"
#include "preload/waits/slice.h"
#include "preload/waits/wait.h"

enum { NO_YIELD = 0 }; /* in place of the time when a yield began */

enum {
    LEFT_OUT_MOST = 1024,
    AGAIN_LEAST = 16,
    AGAIN_NS = 10000,
};

/* The thread's yields since the last one that was written. */
static __thread struct {
    uint64_t end; /* of the last one, in units of the clock */
    uint32_t n;
    bool apart; /* the thread did something else in between, or had no CPU */
} since_written __attribute__((tls_model("initial-exec")));

/* Notes a yield that is over. */
static void note(uint64_t since, uint64_t now)
{
    static _Atomic uint64_t again_units;
    uint64_t again = atomic_load_explicit(&again_units, memory_order_relaxed);
    if (__builtin_expect(!again, 0)) {
        again = gt_clock_units(AGAIN_NS);
        atomic_store_explicit(&again_units, again, memory_order_relaxed);
    }
    since_written.apart |= since - since_written.end > again;
    since_written.end = now;
    since_written.n++;
}

/* The end holds threads when the recording is over. Apart: gt_yield_begin then needs no frame. */
static __attribute__((noinline)) uint64_t begin_unrecorded(void)
{
    gt_process_check_hold();
    return NO_YIELD;
}

uint64_t gt_yield_begin(void)
{
    if (!gt_recording())
        return begin_unrecorded();
    return gt_muted() ? NO_YIELD : gt_clock_now();
}

static void write_yield(struct gt_thread *t, uint64_t since, struct gt_stack *stack)
{
    bool again = since_written.n >= AGAIN_LEAST && !since_written.apart;
    if (!gt_writer_pin(&t->w))
        return;
    if (gt_ev_go_stop(&t->w, since, again ? GT_REASON_YIELDS : GT_REASON_YIELD, stack))
        gt_ev_go_resume(&t->w, stack);
    gt_writer_unpin(&t->w);
}

__attribute__((noinline)) void gt_yield_end(enum gt_hook hook, uint64_t since)
{
    if (since == NO_YIELD)
        return;
    if (gt_options.call_min) {
        uint64_t now = gt_clock_now();
        note(since, now);
        if (gt_call_is_short(now - since) && since_written.n < LEFT_OUT_MOST)
            return;
    }
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return;
    if (!gt_muted() && gt_wait_ready(t, (uintptr_t)__builtin_frame_address(0)))
        write_yield(t, since, gt_capture(t, hook));
    gt_thread_leave(t);
    gt_process_check_queue();
    since_written.n = 0;
    since_written.apart = false;
}
