/*
 * jitdump, the records of perf-inject(1): functions that a program makes, moved ones too, each with
 * its time and often with lines. The program maps the file executable, by which it is found, and
 * goes on writing it. One thread at a time.
 */
#ifndef GT_JITDUMP_H
#define GT_JITDUMP_H

#include "growing.h"
#include "made.h"

struct gt_jitdump {
    struct gt_growing file;
    bool other_clock; /* times are not CLOCK_MONOTONIC */
    bool damaged;     /* there is no next record */
};

/* As gt_perf_map_read, of a file that is of this process. */
bool gt_jitdump_read(struct gt_jitdump *dump, const char *path, uid_t owner, uint32_t pid,
                     struct gt_made *made, uint64_t now_ns);

/*
 * The jitdump that process `pid`, as it calls itself, has mapped: its path, out of what
 * /proc/PID/maps says. false: there is none. The buffer has `size` bytes.
 */
bool gt_jitdump_find(const char *maps, uint32_t pid, char *path, size_t size);

#endif
