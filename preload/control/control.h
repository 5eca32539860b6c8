/* The traced process's side of the control page. */
#pragma once

/* Makes the shared page. Called by the drain thread, once it has its own descriptor table. */
void gt_control_open(void);

/* Executes the page's command. Called by the drain thread after it was woken, or by the only
 * thread. */
void gt_control_serve(void);

/* Opens the variable as the control page, which the only thread serves from here on. */
void gt_control_open_alone(void);

/* Does so in a forked child, where the page is a copy of the parent's variable, or the parent's. */
void gt_control_after_fork(void);
