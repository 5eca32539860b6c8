/* See slice.h, and rule 5 of encoder/thread/writer.h. */
#include "slice.h"

#include "channels.h"
#include "fds.h"
#include "hot.h"
#include "wait.h"

#include "encoder/drain/drain.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "preload/control/process_relief.h"
#include "preload/shared/options.h"

/* GOTRACE_SYSCALL_MIN in trace units; computed when it is first needed. */
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

/*
 * The `since` of a call that is announced while nothing is recorded: if recording starts meanwhile,
 * it matters only that the call is under way.
 */
#define UNTIMED 1

/* Slow half of reason_of, for a descriptor that has a name or whose kind is not known yet. */
static __attribute__((noinline)) enum gt_reason look_at(struct gt_thread *t, int fd, uint64_t since)
{
    enum gt_fd_kind kind = gt_fd_find(fd);
    if (kind == GT_FD_NAMED && since != UNTIMED)
        t->channel = (struct gt_channel){since, fd, gt_channel_name(fd)};
    return kind == GT_FD_OTHER ? GT_REASON_NONE : GT_REASON_NETWORK;
}

static enum gt_reason reason_of(struct gt_thread *t, int on, uint64_t since)
{
    static const enum gt_reason reasons[] = {[-GT_SYNC] = GT_REASON_SYNC,
                                             [-GT_TIME] = GT_REASON_SLEEP};
    if (on >= 0) {
        enum gt_fd_kind kind = gt_fd_known(on);
        if (__builtin_expect(!(kind & 1), 0))
            return look_at(t, on, since);
        return kind == GT_FD_SOCKET ? GT_REASON_NETWORK : GT_REASON_NONE;
    }
    if (on > GT_NETWORK)
        return reasons[-on];
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

/*
 * The stack, or NULL if it can be taken later: most calls turn out too short to be written, and
 * their stacks are never walked.
 */
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
    struct gt_thread *t = gt_options.calls ? gt_thread_enter() : NULL;
    if (!t) {
        slice.stands = gt_thread_stand();
        return slice;
    }
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
    if (!slice->thread || slice->since == UNTIMED || !gt_timeout_is_set(timeout))
        return;
    slice->due = gt_timeout_due(timeout, slice->since, GT_POLL_PER_MILLE);
    gt_call_ends_at(&slice->thread->w, slice->since, slice->due);
}

void gt_slice_expired(struct gt_slice *slice, const struct gt_timeout *timeout)
{
    if (slice->since > UNTIMED)
        slice->woken = gt_timeout_over(timeout, slice->since, slice->due, GT_POLL_PER_MILLE);
}

/* Inlined where most calls that are written end. */
static inline __attribute__((always_inline)) void write_slice(struct gt_thread *t,
                                                              struct gt_slice *slice, bool unseen)
{
    int saved = errno;
    gt_thread_reenter(t);
    t->frame = 0;
    struct gt_stack *stack = unseen ? gt_capture(t, slice->hook) : NULL;
    bool entered = gt_writer_pin(&t->w);
    t->stuck = !entered && !unseen; /* the trace has its beginning, so the end must follow */
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
    errno = saved;
    gt_process_check_hold();
}

void gt_slice_end(struct gt_slice *slice)
{
    struct gt_thread *t = slice->thread;
    if (!t && slice->stands)
        gt_thread_go_on(gt_self);
    if (!t)
        gt_process_check_hold();
    if (!t || t->frame != slice->frame)
        return;
    bool muted = slice->since == UNTIMED;
    uint64_t units = muted ? 0 : gt_clock_now() - slice->since;
    bool unseen = gt_call_withdraw(&t->w, slice->since);
    /*
     * The frame stays noted until the withdrawal: a signal handler's call would else be noted in
     * place of this one.
     */
    if (__builtin_expect(unseen && (muted || gt_call_is_short(units)), 1)) {
        t->frame = 0;
        return;
    }
    write_slice(t, slice, unseen);
}

void gt_slice_made(struct gt_slice *slice, enum gt_made how)
{
    enum { BETWEEN_NS = 1000000 };
    struct gt_thread *t = slice->thread;
    if (!t || t->frame != slice->frame || slice->since == UNTIMED)
        return;
    uint64_t now = gt_clock_now();
    if (now < t->next_made[how] || !gt_call_is_short(now - slice->since))
        return;
    t->next_made[how] = now + gt_clock_units(BETWEEN_NS);
    slice->reason = GT_REASON_NONE;
    write_slice(t, slice, gt_call_withdraw(&t->w, slice->since));
}

void gt_slice_of_fork(uint64_t since)
{
    /* No thread appears here: one that was in its fork when the library came is being told of. */
    bool known = since && gt_self && gt_self != &gt_nobody;
    struct gt_thread *t = known && gt_options.calls ? gt_thread_enter() : NULL;
    if (!t)
        return;
    bool writes = !t->frame && !gt_muted() && !gt_call_is_short(gt_clock_now() - since);
    struct gt_stack *stack = writes ? gt_capture(t, GT_LEAF_fork) : NULL;
    if (writes && gt_writer_pin(&t->w)) {
        /* The generation, or the recording, may have begun in the middle of the fork. */
        if (t->w.last < since && atomic_load(&gt_gen.from) <= since) {
            gt_call_write(&t->w, since, GT_REASON_NONE, stack);
            t->w.woken = 0;
            gt_ev_go_resume(&t->w, t->w.g.wait_stack);
        }
        gt_writer_unpin(&t->w);
    }
    gt_thread_leave(t);
}
