/* Which state of its parent a forked child keeps. */
#pragma once

/* Turns the calling process into a child in the trace. Called by fork.c. */
void gt_inherit(void);
