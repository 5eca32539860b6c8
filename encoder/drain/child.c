/* See child.h. */
#include "child.h"

#include "drain.h"
#include "generation.h"
#include "live.h"
#include "recording.h"
#include "renewal.h"
#include "ring.h"
#include "rotation.h"

#include "encoder/cpu/copies.h"
#include "encoder/cpu/merge.h"
#include "encoder/cpu/samples.h"
#include "encoder/cpu/sched.h"
#include "encoder/cpu/unwatched.h"
#include "encoder/file/output.h"
#include "encoder/format/origin.h"
#include "encoder/thread/account.h"
#include "encoder/thread/buffers.h"
#include "encoder/thread/events.h"
#include "encoder/thread/given.h"
#include "encoder/thread/held.h"
#include "encoder/thread/procs.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/switch.h"

/* Stacks and strings stay, with their ids: the child's own traces use the same ones. */
static void (*const state[])(void) = {
    gt_live_after_fork, /* before anything is written: the black box belongs to the parent */

    /* Generation numbers go on. Its buffers are given back before the pool forgets all buffers. */
    gt_generation_after_fork, gt_origin_after_fork, /* whose child this is, and since when */
    gt_output_after_fork, /* the file belongs to the parent: only the descriptor is closed */

    /*
     * Tables: changes that were half done are undone, locks are free. Strings first, others use
     * them.
     */
    gt_strings_after_fork, /* the lock, and an insertion that was half done */
    gt_stacks_after_fork,  /* no stack is lost yet */
    gt_renewal_after_fork, /* threads are looked at anew before an old era is given back */
    gt_merge_after_fork,   /* goroutines; their memory may be in the middle of a change */

    /* Threads of the parent: in the child none of them writes, samples or has a P. */
    gt_samples_after_fork,   /* rings */
    gt_switch_after_fork,    /* none helps urgent threads to switch */
    gt_procs_after_fork,     /* Ps */
    gt_account_after_fork,   /* accounts */
    gt_held_after_fork,      /* none holds a lock */
    gt_given_after_fork,     /* none is given a name */
    gt_watch_after_fork,     /* none is watched */
    gt_copies_after_fork,    /* no stack is copied */
    gt_sched_after_fork,     /* no generation is to be completed */
    gt_unwatched_after_fork, /* no stretch without a watch is noted */
    gt_events_after_fork,    /* collections: their clock begins anew */
    gt_writer_after_fork,    /* no writers: none has jumped, no event is lost */

    /* Buffers of the parent's threads are lost; queued buffers are free, and no thread waits. */
    gt_buffers_after_fork, /* the pool */
    gt_ring_clear,         /* gives its memory back */

    gt_recording_after_fork, /* no recording */
    gt_rotation_after_fork,  /* no files */
    gt_drain_after_fork,     /* last: from here on there may be a drain side */
};

void gt_encoder_after_fork(void)
{
    for (unsigned i = 0; i < sizeof state / sizeof *state; i++)
        state[i]();
}
