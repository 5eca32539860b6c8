/* See fork.h. */
#include "fork.h"

#include "attach.h"
#include "census.h"
#include "control.h"
#include "drain_thread.h"
#include "fatal.h"
#include "made.h"
#include "met.h"
#include "names.h"
#include "process.h"
#include "real.h"
#include "report.h"
#include "sampler.h"
#include "signals.h"
#include "thread.h"
#include "usage.h"

#include "encoder/base/arena.h"
#include "encoder/base/log.h"
#include "encoder/fork.h"
#include "preload/heap/heap.h"
#include "preload/hooks/annotate.h"
#include "preload/hooks/registry.h"
#include "preload/hooks/signalled.h"
#include "preload/stacks/python.h"
#include "symbolize/modules.h"
#include "symbolize/symbolize.h"

#include <pthread.h>
#include <sys/mman.h>

static uint32_t *same_memory; /* zero in a forked child: MADV_WIPEONFORK */

/* What a child has of its parent's, from what others build on to what uses that. */
static void (*const state[])(void) = {
    gt_process_after_fork, /* whose process this is; nothing has begun, nothing has ended */
    gt_attach_after_fork,  /* and whether its calls come to us */
    gt_census_after_fork,  /* and whether it may be recorded is to be asked */

    /* The parent's thread is not here. Its page is: buffers sleep on it, so it goes first. */
    gt_control_after_fork,
    gt_drain_thread_after_fork, /* nobody waits for its end */
    gt_encoder_after_fork,      /* a table of its own */

    gt_met_after_fork,      /* nobody has yet to be met */
    gt_registry_after_fork, /* nobody waits */
    gt_signalled_reset,     /* or has signalled */
    gt_modules_after_fork,  /* they stay, as far as they were known */
    gt_python_after_fork,   /* nobody looks for it, or is in another's frames */
    gt_names_after_fork,    /* the symbolizer, too; what made it hurry is over */
    gt_made_after_fork,     /* made code stays, its files have other names */
    gt_heap_after_fork,     /* so do live bytes; the clock begins anew */
    gt_sampler_after_fork,  /* timers are not inherited */
    gt_signals_after_fork,  /* handlers are; their table's lock is free */
    gt_usage_after_fork,    /* no thread has descriptors of its own */
    gt_fatal_after_fork,    /* nobody has begun to die */
    gt_report_after_fork,   /* nor has anything been said */
    gt_annotate_after_fork, /* the parent's tasks are none here */

    gt_thread_after_fork, /* the only one, a goroutine with all of the above from here on */
    gt_process_begin_child,
};

static void become_child(void)
{
    gt_debug_abandon();
    if (same_memory)
        *same_memory = 1;
    if (!gt_process_is_followed())
        return;
    for (unsigned i = 0; i < sizeof state / sizeof *state; i++)
        state[i]();
}

enum { HELD_SYMBOLS = 1, HELD_MODULES = 2 };

static __thread uint64_t began; /* the counter before libc's fork; 0: that is not under way */

uint64_t gt_fork_began(void)
{
    return began;
}

unsigned gt_fork_begin(void)
{
    if (gt_process_is_left_alone())
        return 0;
    began = gt_clock_counter();
    gt_log_let_go();
    unsigned held = gt_symbolize_fork_begin() ? HELD_SYMBOLS : 0;
    return held | (gt_modules_fork_begin() ? HELD_MODULES : 0);
}

void gt_fork_give_back(unsigned held)
{
    if (held & HELD_MODULES)
        gt_modules_fork_end();
    if (held & HELD_SYMBOLS)
        gt_symbolize_fork_end();
}

void gt_fork_end(unsigned held)
{
    gt_fork_give_back(held);
    gt_fork_check();
    began = 0;
}

static __thread unsigned held_over_fork;

static void before_libc_forks(void)
{
    GT_KEEP_ERRNO;
    held_over_fork = gt_fork_begin();
}

static void after_libc_forked(void)
{
    GT_KEEP_ERRNO;
    gt_fork_end(held_over_fork);
}

/* Not by what a wiped page tells: old kernels do not wipe. */
static void in_libcs_child(void)
{
    GT_KEEP_ERRNO;
    gt_fork_give_back(held_over_fork);
    become_child();
    began = 0;
}

void gt_fork_watch(void)
{
    pthread_atfork(before_libc_forks, after_libc_forked, in_libcs_child);
    uint32_t *word = gt_pages_alloc(sizeof *word);
    if (word && madvise(word, sizeof *word, MADV_WIPEONFORK) == 0) {
        *word = 1;
        same_memory = word;
    }
}

void gt_fork_check(void)
{
    if (same_memory && !*same_memory)
        become_child();
}
