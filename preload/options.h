/* The environment switches; one table in options.c, one in the README. Read once, at start. */
#ifndef GT_OPTIONS_H
#define GT_OPTIONS_H

#include "../encoder/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct gt_options {
    bool on;
    bool quiet;
    bool heap;
    bool children;     /* descendants are traced too */
    uint64_t max_size; /* of the file, in bytes; 0: no limit */
    uint64_t max_mem;  /* of event buffers, in bytes */
    const struct gt_format *format;
    char output[PATH_MAX]; /* pattern, absolute */
    bool calls;            /* calls into the kernel are shown */
    uint64_t call_min;     /* unless they are shorter, in ns */
    uint32_t cpu_hz;       /* samples in a second of a thread's CPU time; 0: none */
};
extern struct gt_options gt_options;

void gt_options_read(void);

/*
 * For the launcher: NULL when the switch takes the value; else what it takes, for a message, or ""
 * when there is no such switch.
 */
const char *gt_options_refusal(const char *name, const char *value);

/*
 * The output pattern expanded for this process, absolute. A descendant of the process the user
 * started gets .<pid> appended where the pattern has no %p. false: longer than PATH_MAX.
 */
bool gt_options_output_path(char path[PATH_MAX], bool descendant);

#endif
