/*
 * /proc/PID/maps, line by line, past libc's functions. Drain side; also the command.
 */
#ifndef GT_MAPS_H
#define GT_MAPS_H

#include <stdbool.h>

/* A line, which ends before `end`, with no zero behind it. true: it is what was looked for. */
typedef bool gt_maps_fn(void *arg, const char *line, const char *end);

/* Calls fn with the lines of that file until it has found something; whether it has. */
bool gt_maps_look(const char *path, gt_maps_fn *fn, void *arg);

#endif
