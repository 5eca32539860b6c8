/* See fork.h. */
#include "fork.h"

#include "account.h"
#include "buffers.h"
#include "drain.h"
#include "events.h"
#include "generation.h"
#include "held.h"
#include "live.h"
#include "origin.h"
#include "output.h"
#include "procs.h"
#include "recording.h"
#include "renewal.h"
#include "ring.h"
#include "rotation.h"
#include "samples.h"
#include "sched.h"
#include "stacks.h"
#include "strings.h"
#include "switch.h"

#include "encoder/merge.h"

/* Stacks and strings stay, with their ids: the child's own traces are full of the same ones. */
static void (*const state[])(void) = {
    gt_live_after_fork, /* before anything is written: the black box is the parent's */

    /* Numbers go on. Its buffers go back, so before the pool is told that none is out. */
    gt_generation_after_fork, gt_origin_after_fork, /* whose child it is, and since when */
    gt_output_after_fork, /* the file is the parent's: only its descriptor is closed */

    /* Tables: what was half done is undone, locks are free. Strings first, the others use them. */
    gt_strings_after_fork, /* the lock, and an insertion in its middle */
    gt_stacks_after_fork,  /* none is lost yet */
    gt_renewal_after_fork, /* an old era is looked through anew */
    gt_merge_after_fork,   /* v1's goroutines; their memory may be in the middle of a change */

    /* Threads that are not here: none writes, samples or has a P. */
    gt_samples_after_fork, /* rings */
    gt_switch_after_fork,  /* writers */
    gt_procs_after_fork,   /* Ps */
    gt_account_after_fork, /* accounts */
    gt_held_after_fork,    /* or holds a lock */
    gt_watch_after_fork,   /* nor is one watched */
    gt_copies_after_fork,  /* nor its stack copied */
    gt_sched_after_fork,   /* or to be completed */
    gt_events_after_fork,  /* collections: the clock begins anew */
    gt_writer_after_fork,  /* none has jumped, nothing is lost */

    /* What the parent's threads had is lost; what was queued is free, and nobody waits. */
    gt_buffers_after_fork, /* the pool */
    gt_ring_clear,         /* whose buffers go there */

    gt_recording_after_fork, /* there is none */
    gt_rotation_after_fork,  /* nor has it any files */
    gt_drain_after_fork,     /* the last: from here on there may be a drain side */
};

void gt_encoder_after_fork(void)
{
    for (unsigned i = 0; i < sizeof state / sizeof *state; i++)
        state[i]();
}
