/* The table of upward.h. No other file needs this one by name. */
#include "preload/upward.h"

#include "preload/commands/commands.h"
#include "preload/life/met.h"
#include "preload/heap/heap.h"
#include "preload/heap/operators.h"
#include "preload/bind/foreign.h"
#include "preload/waits/slice.h"
#include "preload/life/births.h"
#include "inherit.h"
#include "preload/life/process_end.h"
#include "preload/life/process_start.h"
#include "preload/thread/capture.h"

static int resolved(const char *hide[GT_UPWARD_HIDE_MAX])
{
    gt_foreign_init();
    gt_heap_resolved();
    return gt_operators_resolve(hide);
}

static struct gt_thread *appear(void)
{
    gt_process_second_thread();
    gt_self = &gt_nobody; /* hooks called below only forward */
    bool now;
    struct gt_thread *t = gt_met_claim(&now);
    return t || !now ? t : gt_thread_appear();
}

const struct gt_upward gt_upward = {
    .resolved = resolved,
    .free = gt_heap_free,
    .appear = appear,
    .elsewhere = gt_thread_elsewhere,
    .ended = gt_process_end,
    .inherit = gt_inherit,
    .forked = gt_slice_of_fork,
    .execute = gt_command_execute,
#ifdef GT_DEBUG
    .in_handler = gt_capture_in_handler,
#endif
};
