/*
 * The regions of gotrace.h that one thread has open. hooks/annotate.c fills this in. It stands in
 * this room, below thread.h, because struct gt_thread contains it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The open regions of a thread in the trace, outermost first. Go's readers refuse a trace in which
 * a region ends that is not the innermost, or ends with another name than it began with.
 */
struct gt_regions {
    uint32_t open;
    uint32_t serial; /* of the last region; 0: there was none */
    struct gt_region {
        uint64_t id, task, name_id;
        uint32_t name; /* in names; the name of the next region follows it */
        uint32_t name_end;
        bool ended; /* the program ended it, but the end could not be written yet */
    } region[64];
    char names[8 << 10];
};
