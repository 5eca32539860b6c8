/*
 * Several traces on one timeline: by the counter that all processes of a boot share; else by the
 * time of day, or by a log that stands in both at the same moment.
 */
#ifndef GT_ALIGNING_H
#define GT_ALIGNING_H

#include "encoder/read/trace.h"

/* One of them. */
struct gt_aligned {
    struct gt_trace *trace; /* begun: its first events' time is known */
    uint64_t later;         /* ns from the first moment of all to its beginning */
    uint64_t forked;        /* ns, in the same way: its process was; 0: not, or before all */
    enum { GT_BY_COUNTER, GT_BY_WALL, GT_BY_MARK } by;
};

/*
 * Finds out `later` and `forked`, and sets trace->scale where they have a common clock. mark: the
 * text of a log that is at the same moment in all that have no common clock; or NULL. *origin: of
 * what is written, its ns 0 (ticks 0: not known). Ends the program with a message where a trace
 * does not say when it was.
 */
void gt_align(struct gt_aligned *all, size_t n, const char *mark, struct gt_origin *origin);

/* What of a trace's origin is true of what is written of it alone, in ns since its beginning + 1.
 */
struct gt_origin gt_align_alone(const struct gt_trace *trace, double ns_per_unit);

/* Whether they are of one boot of one host, and say when they were by the same counter. */
bool gt_align_same_clock(const struct gt_origin *a, const struct gt_origin *b);

#endif
