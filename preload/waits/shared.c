/* See shared.h. */
#include "shared.h"

#include "encoder/base/clock.h"
#include "encoder/format/lock_texts.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "preload/thread/capture.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

bool gt_shared_is(enum gt_lock_kind kind, const void *lock)
{
    switch (kind) {
    case GT_LOCK_SEM: return ((const struct gt_sem *)lock)->shared;
    case GT_LOCK_COND: return gt_glibc_cond_flags(lock) & GT_COND_SHARED;
    case GT_LOCK_MUTEX: return gt_glibc_mutex_is_shared(lock);
    case GT_LOCK_BARRIER: return ((const struct gt_barrier *)lock)->shared;
    case GT_LOCK_RWLOCK: return gt_glibc_rwlock_is_shared(lock);
    default: return kind == GT_LOCK_PI; /* its word does not say, so it may be */
    }
}

static void tell(struct gt_thread *t, uint32_t hook, const void *lock, bool all)
{
    uint64_t now = gt_clock_now();
    struct gt_stack *stack = gt_capture(t, hook);
    struct gt_string *what = gt_held_string(
        &t->w, &(struct gt_lock_in_use){.at = lock,
                                        .holder = all ? GT_HOLDER_WAKER_OF_ALL : GT_HOLDER_WAKER,
                                        .epoch = (uint32_t)gt_modules_epoch(),
                                        .shared = true});
    if (!what || !gt_writer_pin(&t->w))
        return;
    gt_ev_lock(&t->w, now, what, stack);
    gt_writer_unpin(&t->w);
}

void gt_shared_wakes(uint32_t hook, const void *lock, bool all)
{
    struct gt_thread *t = gt_recording() ? gt_thread_enter() : NULL;
    if (!t)
        return;
    if (!gt_muted())
        tell(t, hook, lock, all);
    gt_thread_leave(t);
}
