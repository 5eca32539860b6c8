/* What a command on the control page does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Executes a command of the control page (control_page.h). path: PATH_MAX bytes, as on the page.
 * text: the result for the user, empty before. alone: in the only thread. Returns 0 or -errno.
 * Drain side.
 */
int gt_command_execute(uint32_t command, char *path, char *text, bool alone);
