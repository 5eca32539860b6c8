/* See inherit.h. */
#include "inherit.h"

#include "encoder/drain/child.h"
#include "preload/bind/jit_names.h"
#include "preload/control/control.h"
#include "preload/control/report.h"
#include "preload/heap/heap.h"
#include "preload/hooks/annotate.h"
#include "preload/life/births.h"
#include "preload/life/met.h"
#include "preload/life/process_start.h"
#include "preload/process/attach_state.h"
#include "preload/process/fatal.h"
#include "preload/process/process_names.h"
#include "preload/process/read_usage.h"
#include "preload/process/signals.h"
#include "preload/registry/contention.h"
#include "preload/registry/registry.h"
#include "preload/shared/census.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/sampler.h"
#include "preload/waits/brief.h"
#include "preload/waits/file_locks.h"
#include "preload/waits/futex_any.h"
#include "preload/waits/signalled.h"
#include "symbolize/elf/modules.h"

/* Turns the state inherited from the parent into the child's: each entry after those it needs. */
static void (*const state[])(void) = {
    gt_process_after_fork, /* a new process; its recording has neither begun nor ended */
    gt_attach_after_fork,  /* whether the child's calls come to us */
    gt_census_after_fork,  /* the child has not asked yet whether it may be recorded */

    /* The drain thread is not in the child. The control page is: buffers sleep on it, so it goes
     * first. */
    gt_control_after_fork,
    gt_encoder_after_fork, /* a table of its own */

    gt_met_after_fork,        /* no thread has yet to be met */
    gt_registry_after_fork,   /* no thread waits */
    gt_futex_any_after_fork,  /* nor for any of several futexes */
    gt_file_locks_after_fork, /* the parent holds the locks on files */
    gt_signalled_reset,       /* no thread has signalled */
    gt_brief_reset,           /* none has waited briefly */
    gt_contention_begin,      /* and none for long */
    gt_modules_after_fork,    /* modules stay known */
    gt_python_after_fork,     /* no thread looks for Python or walks another thread's frames */
    gt_names_after_fork,      /* the symbolizer stays; the child has no reason to hurry */
    gt_made_after_fork,       /* made code stays; its files have other names */
    gt_heap_after_fork,       /* live bytes stay; the sampling clock begins anew */
    gt_heap_slots_after_fork, /* and so does the clock of their events */
    gt_sampler_after_fork,    /* timers are not inherited */
    gt_signals_after_fork,    /* handlers are inherited; the lock of their table is free */
    gt_usage_after_fork,      /* no thread has descriptors of its own */
    gt_fatal_after_fork,      /* no thread has begun to die */
    gt_report_after_fork,     /* nothing has been reported */
    gt_annotate_after_fork,   /* the parent's tasks do not exist here */

    gt_thread_after_fork, /* the only thread: from here on a goroutine with all of the above */
    gt_process_begin_child,
};

void gt_inherit(void)
{
    for (unsigned i = 0; i < sizeof state / sizeof *state; i++)
        state[i]();
}
