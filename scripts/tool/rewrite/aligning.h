/*
 * Puts several traces on one timeline, by the counter that all processes of a boot share. Without a
 * common counter, uses the time of day, or a log that every trace has at the same moment.
 */
#pragma once

#include "encoder/read/trace.h"

/* One of the traces, and its place on the timeline. */
struct gt_aligned {
    struct gt_trace *trace; /* begun: its first events' time is known */
    uint64_t later;         /* ns from the beginning of the timeline to the trace's beginning */
    uint64_t forked;        /* ns on the timeline: fork of its process; 0: none, or before 0 */
    enum { GT_BY_COUNTER, GT_BY_WALL, GT_BY_MARK } by;
};

/*
 * Sets `later` and `forked`, and trace->scale of the traces that share the first trace's clock.
 * mark: the text of a log that has the same moment in all traces without a common clock; or NULL.
 * *origin: the origin of ns 0 of the timeline (ticks 0: not known). Ends the program with a message
 * if a trace does not say when it was recorded.
 */
void gt_align(struct gt_aligned *all, size_t n, const char *mark, struct gt_origin *origin);

/* The origin of a trace rewritten from this one alone, whose times are ns since its beginning + 1.
 */
struct gt_origin gt_align_alone(const struct gt_trace *trace, double ns_per_unit);

/* Whether both traces were recorded in one boot of one host, by the same counter. */
bool gt_align_same_clock(const struct gt_origin *a, const struct gt_origin *b);
