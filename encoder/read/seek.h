/*
 * Finds a time in a v2 file without reading what is before it. Batches say which generation they
 * are of and when they begin. And from any byte of the file the next batch can be found.
 */
#pragma once

#include "trace.h"

/* Where in the file a generation begins, and when. */
struct gt_place_in_file {
    const uint8_t *start;
    uint64_t gen;
    uint64_t ns; /* since the trace's beginning */
};

/*
 * Finds the generation that has that time (ns since the beginning): the last one that begins
 * before it, or the first. false: no generation is complete, or the file cannot be read.
 */
bool gt_seek(const struct gt_trace *trace, uint64_t ns, struct gt_place_in_file *place);

/* Finds the generation that begins at or after an offset in the file. */
bool gt_seek_offset(const struct gt_trace *trace, size_t offset, struct gt_place_in_file *place);
