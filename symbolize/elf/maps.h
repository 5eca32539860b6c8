/*
 * Reads /proc/PID/maps line by line, without libc's stdio. Drain side; also used by the command.
 */
#pragma once

#include <stdbool.h>

/* Gets a line, which ends before `end` without a zero. true: this is the line looked for. */
typedef bool gt_maps_fn(void *arg, const char *line, const char *end);

/* Calls fn with the lines of the file until fn returns true. Whether it did. */
bool gt_maps_look(const char *path, gt_maps_fn *fn, void *arg);
