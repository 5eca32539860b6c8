/* Annotations (gotrace.h): what a thread's open regions are. */
#ifndef GT_ANNOTATE_H
#define GT_ANNOTATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The regions of a thread that stand open in the trace, outermost first. Go's readers refuse a file
 * in which one ends that is not the innermost, or with another name than it began with.
 */
struct gt_regions {
    uint32_t open;
    uint32_t serial; /* of the last one; 0: there was none */
    struct gt_region {
        uint64_t id, task, name_id;
        uint32_t name; /* in names; the next one's begins behind it */
        uint32_t name_end;
        bool ended; /* but the end could not be written */
    } region[64];
    char names[8 << 10];
};

/* gotrace_region_begin and _end, for our own code. */
uint64_t gt_region_begin(uint64_t task, const char *name);
void gt_region_end(uint64_t region);

/* In a forked child: the tasks of the parent are none of its trace. */
void gt_annotate_after_fork(void);

#endif
