/* Whether the program's calls come to us because of `gotrace attach` (attach.h). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Set by attach.c only. FREE: forked while the parent was UNDONE. */
extern enum gt_attached {
    GT_ATTACHED_NEVER,
    GT_ATTACHED_BOUND,
    GT_ATTACHED_UNDONE,
    GT_ATTACHED_FREE
} gt_attached;

/* Whether the program is detached: its calls do not come to us. */
bool gt_attach_is_undone(void);

/* Whether gotrace_attached has begun and not returned. Set by attach.c only. */
extern _Atomic bool gt_attach_begun;

/*
 * Whether this process was forked while its parent was detached. The child has the library loaded,
 * does not use it, and can be attached to like any program.
 */
bool gt_attach_is_free(void);
void gt_attach_after_fork(void);
