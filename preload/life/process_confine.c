/* See process_confine.h. */
#include "process_confine.h"

#include "process_end.h"
#include "process_start.h"

#include "encoder/base/log.h"
#include "encoder/drain/drain.h"
#include "preload/bind/real.h"
#include "preload/control/control.h"
#include "preload/process/process_names.h"
#include "preload/process/process_state.h"
#include "preload/shared/descent.h"
#include "preload/shared/options.h"
#include "preload/thread/heap_slots.h"
#include "preload/thread/sampler.h"
#include "preload/thread/thread.h"

static void command(enum gt_drain_command what)
{
    struct gt_thread *t = gt_thread_enter();
    if (t) {
        gt_drain_command(what, NULL);
        gt_thread_leave(t);
    }
}

void gt_process_confines(bool all)
{
    /* The drain thread keeps its access to files, unless all threads lose theirs. */
    if ((gt_drain_is_threaded() && !all) || gt_process_has_ended())
        return;
    GT_OWN_WORK(own);
    gt_names_confine();
    if (!gt_recording())
        gt_process_begin(gt_options.manual); /* not possible later, when it makes a thread */
    command(GT_DRAIN_SETTLE);
}

void gt_process_await_drain(void)
{
    if (!gt_drain_is_threaded() || gt_process_has_ended())
        return;
    GT_OWN_WORK(own);
    command(GT_DRAIN_PASS);
}

void gt_process_withdraw(void)
{
    if (!gt_process_is_ours())
        return;
    GT_KEEP_ERRNO;
    if (gt_recording())
        gt_log("the program confines itself by seccomp(2): nothing is recorded from here on");
    gt_descent_confine();
    gt_sampler_end();
    gt_process_end(true); /* the filter may confine all threads, the drain thread too */
    gt_process.pid = 0;
    gt_control_open_alone(); /* shows clients that the process is not followed */
}

void gt_process_abandon_children(void)
{
    gt_descent_confine();
    atomic_store(&gt_process.abandons_children, true);
}
