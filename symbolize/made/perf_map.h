/*
 * /tmp/perf-PID.map: a line "START SIZE NAME" for each function that a program makes, the numbers
 * in hexadecimal. The file has no times, and programs may write it late. Only one thing is certain:
 * the function of a line was there before we read the line. One thread at a time.
 */
#pragma once

#include "growing.h"
#include "made.h"

struct gt_perf_map {
    struct gt_growing file;
    bool overlong; /* the next bytes are the rest of a line that is too long */
};

/*
 * Reads the new lines. false: there is more than is read at a time, and until it is read, entries
 * may be replaced without our knowing. A file that does not exist or must not be read (growing.h)
 * has no new lines.
 */
bool gt_perf_map_read(struct gt_perf_map *map, const char *path, uid_t owner,
                      struct gt_made_functions *made, uint64_t now_ns);
