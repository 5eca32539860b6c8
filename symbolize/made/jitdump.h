/*
 * jitdump, the records of perf-inject(1): functions that a program makes or moves, each with its
 * time and often with lines. The program maps the file as executable, which is how we find it, and
 * goes on writing it. One thread at a time.
 */
#pragma once

#include "growing.h"
#include "made.h"

struct gt_jitdump {
    struct gt_growing file;
    bool other_clock; /* times are not CLOCK_MONOTONIC */
    bool damaged;     /* no further record can be read */
};

/* Reads the new records, as gt_perf_map_read does, if the file belongs to process `pid`. */
bool gt_jitdump_read(struct gt_jitdump *dump, const char *path, uid_t owner, uint32_t pid,
                     struct gt_made_functions *made, uint64_t now_ns);

/*
 * Finds in `maps`, a /proc/PID/maps, the path of the jitdump that the process has mapped. pid: the
 * process's PID in its own namespace. false: there is none. The buffer `path` has `size` bytes.
 */
bool gt_jitdump_find(const char *maps, uint32_t pid, char *path, size_t size);
