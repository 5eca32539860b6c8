/* See slice.h, and rule 5 of encoder/writer.h. */
#include "slice.h"

#include "channels.h"
#include "fds.h"
#include "wait.h"

#include "encoder/call.h"
#include "encoder/drain.h"
#include "encoder/events.h"
#include "preload/options.h"
#include "preload/process.h"

/* GOTRACE_SYSCALL_MIN in trace units; measured when it is first needed. */
static _Atomic uint64_t min_units;

bool gt_call_is_short(uint64_t units)
{
    uint64_t min = atomic_load_explicit(&min_units, memory_order_relaxed);
    if (__builtin_expect(!min, 0) && gt_options.call_min) {
        min = gt_clock_units(gt_options.call_min);
        atomic_store_explicit(&min_units, min, memory_order_relaxed);
    }
    return units < min;
}

/* When a call began of which only its being under way counts, until recording starts. */
#define UNTIMED 1

/* Of a descriptor that has a name, or is not known yet. */
static __attribute__((noinline)) enum gt_reason look_at(struct gt_thread *t, int fd, uint64_t since)
{
    enum gt_fd_kind kind = gt_fd_find(fd);
    if (kind == GT_FD_NAMED && since != UNTIMED)
        t->channel = (struct gt_channel){since, fd, gt_channel_name(fd)};
    return kind == GT_FD_OTHER ? GT_REASON_NONE : GT_REASON_NETWORK;
}

static enum gt_reason reason_of(struct gt_thread *t, int on, uint64_t since)
{
    if (on >= 0) {
        enum gt_fd_kind kind = gt_fd_known(on);
        if (__builtin_expect(!(kind & 1), 0))
            return look_at(t, on, since);
        return kind == GT_FD_SOCKET ? GT_REASON_NETWORK : GT_REASON_NONE;
    }
    if (on > GT_NETWORK)
        return on == GT_SYNC ? GT_REASON_SYNC : GT_REASON_NONE;
    if (__builtin_expect(gt_channels_wanted(), 0) && on < GT_NETWORK)
        look_at(t, GT_NETWORK - 1 - on, since);
    return GT_REASON_NETWORK;
}

bool gt_slice_is_left_out(void)
{
    if (__builtin_expect(gt_drain_unattended, 0))
        gt_process_attend();
    return gt_options.call_min;
}

/* Most calls turn out to be too short to be written: their stacks are never looked at. */
static struct gt_stack *stack_now(struct gt_thread *t, enum gt_hook hook, struct gt_here here,
                                  bool muted)
{
    return gt_capture_later(t, hook, here) || muted ? NULL : gt_capture(t, hook);
}

__attribute__((noinline)) struct gt_slice gt_slice_begin_in(enum gt_hook hook, int on,
                                                            struct gt_here here)
{
    struct gt_slice slice = {.frame = (uintptr_t)__builtin_frame_address(0), .hook = hook};
    if (__builtin_expect(gt_drain_unattended, 0))
        gt_process_attend();
    if (!gt_options.calls)
        return slice;
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return slice;
    if (gt_wait_ready(t, slice.frame)) {
        bool muted = gt_muted();
        slice.since = muted ? UNTIMED : gt_clock_now();
        slice.reason = reason_of(t, on, slice.since);
        struct gt_stack *stack = stack_now(t, hook, here, muted);
        if (gt_writer_pin(&t->w)) {
            if (gt_call_announce(&t->w, slice.since, slice.reason, stack))
                slice.thread = t;
            gt_writer_unpin(&t->w);
        }
        if (slice.thread)
            t->frame = slice.frame;
    }
    gt_thread_leave(t);
    return slice;
}

void gt_slice_ends(struct gt_slice *slice, const struct gt_timeout *timeout)
{
    if (slice->thread && slice->since > UNTIMED && gt_timeout_is_set(timeout))
        gt_call_ends_at(&slice->thread->w, slice->since,
                        gt_timeout_due(timeout, slice->since, GT_POLL_PER_MILLE));
}

void gt_slice_expired(struct gt_slice *slice, const struct gt_timeout *timeout)
{
    if (slice->since > UNTIMED)
        slice->woken = gt_timeout_over(timeout, slice->since, GT_POLL_PER_MILLE);
}

static void write_slice(struct gt_thread *t, struct gt_slice *slice, bool unseen)
{
    gt_thread_reenter(t);
    t->frame = 0;
    struct gt_stack *stack = unseen ? gt_capture(t, slice->hook) : NULL;
    bool entered = gt_writer_pin(&t->w);
    t->stuck = !entered && !unseen; /* its begin stands in the trace, its end must follow */
    if (entered) {
        if (unseen)
            gt_call_write(&t->w, slice->since, slice->reason, stack);
        t->w.woken = slice->woken;
        gt_ev_go_resume(&t->w, t->w.g.wait_stack);
        gt_writer_unpin(&t->w);
        gt_hot_spent(&t->holds, slice->hook, slice->since, t->w.last);
        if (slice->moved > 0)
            gt_channel_tell(t, slice);
    }
    if (!entered && !unseen) {
        gt_call_keep(&t->w);
        gt_capture_close(t);
    }
    gt_thread_leave(t);
    gt_process_check_queue();
}

void gt_slice_end(struct gt_slice *slice)
{
    struct gt_thread *t = slice->thread;
    if (!t || t->frame != slice->frame)
        return;
    bool muted = slice->since == UNTIMED;
    uint64_t units = muted ? 0 : gt_clock_now() - slice->since;
    bool unseen = gt_call_withdraw(&t->w, slice->since);
    /* The frame stays until then: a signal handler's call would be noted in this one's place. */
    if (__builtin_expect(unseen && (muted || gt_call_is_short(units)), 1)) {
        t->frame = 0;
        return;
    }
    int saved = errno;
    write_slice(t, slice, unseen);
    errno = saved;
}
