/*
 * Finding a time in a v2 file without reading what is before it: batches say which generation they
 * are of and when they begin, and the batches that follow an offset are found from any byte.
 */
#ifndef GT_SEEK_H
#define GT_SEEK_H

#include "trace.h"

/* Where in the file a generation begins, and when. */
struct gt_place_in_file {
    const uint8_t *start;
    uint64_t gen;
    uint64_t ns; /* since the trace's beginning */
};

/*
 * The generation in which that time (ns since the beginning) is: the last one that begins before
 * it, or the first. false: there is none that is whole, or the file is not to be understood.
 */
bool gt_seek(const struct gt_trace *trace, uint64_t ns, struct gt_place_in_file *place);

/* The one that begins at or after an offset in the file. */
bool gt_seek_offset(const struct gt_trace *trace, size_t offset, struct gt_place_in_file *place);

#endif
