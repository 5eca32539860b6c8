/* See attach_state.h. */
#include "attach_state.h"

enum gt_attached gt_attached;
_Atomic bool gt_attach_begun;

bool gt_attach_is_undone(void)
{
    return gt_attached == GT_ATTACHED_UNDONE;
}

bool gt_attach_is_free(void)
{
    return gt_attached == GT_ATTACHED_FREE;
}

void gt_attach_after_fork(void)
{
    gt_attach_begun = false; /* the thread that attaches is not here */
    if (gt_attached == GT_ATTACHED_UNDONE)
        gt_attached = GT_ATTACHED_FREE;
}
