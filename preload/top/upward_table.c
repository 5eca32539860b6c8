/* The table of upward.h. No other file needs this one by name. */
#include "inherit.h"

#include "preload/commands/commands.h"
#include "preload/heap/heap.h"
#include "preload/heap/operators.h"
#include "preload/life/births.h"
#include "preload/life/met.h"
#include "preload/life/process_start.h"
#include "preload/upward.h"

static int resolved(const char *hide[GT_UPWARD_HIDE_MAX])
{
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
    .inherit = gt_inherit,
    .execute = gt_command_execute,
};
