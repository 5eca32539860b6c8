/*
 * /tmp/perf-PID.map: a line for each function that a program makes, "START SIZE NAME", the numbers
 * hexadecimal. It does not tell when, and programs may write it late: what is sure is that a line
 * that was read is of what was there before. One thread at a time.
 */
#ifndef GT_PERF_MAP_H
#define GT_PERF_MAP_H

#include "growing.h"
#include "made.h"

struct gt_perf_map {
    struct gt_growing file;
    bool overlong; /* what comes next is the rest of a line that is too long */
};

/*
 * Reads what is new in it. false: there is more than is read at a time, and until then nobody
 * knows what has been replaced. A file that is not there or may not be read (growing.h) has nothing
 * new.
 */
bool gt_perf_map_read(struct gt_perf_map *map, const char *path, uid_t owner, struct gt_made *made,
                      uint64_t now_ns);

#endif
