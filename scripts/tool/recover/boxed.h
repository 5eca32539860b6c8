/* Reads the black box of a process that is gone. The box may be damaged, so all is checked. */
#pragma once

#include "encoder/base/memo.h"
#include "encoder/drain/live.h"
#include "encoder/format/format.h"
#include "encoder/thread/buffers.h"

#include <sys/stat.h>

struct gt_boxed {
    const char *path;
    struct stat file; /* of the file that was read */
    const uint8_t *base;
    size_t size;
    const struct gt_box *box;
    const struct gt_live *live;
    const struct gt_format *format;
    struct gt_memo stacks, strings; /* this process's, by their addresses in the box's process */
};

/* Whether the file begins as a black box does; *pid: its process. */
bool gt_boxed_is(const char *path, uint64_t *pid);

/* Length of a box's name without .live, which is its trace's name; 0: the name has no .live. */
int gt_boxed_trace_length(const char *name);

/* Reads the box. Ends the program with a message if the file is no box. */
void gt_boxed_open(struct gt_boxed *b, const char *path);

/* The process's memory at that address; NULL: not all of it is in the box. */
const void *gt_boxed_at(const struct gt_boxed *b, uint64_t address, size_t size);

/* The last whole generation of the trace's file, and the file's size then. */
const struct gt_live_whole *gt_boxed_whole(const struct gt_boxed *b);

/* Adds the box's modules, stacks and strings to the tables of this process. */
void gt_boxed_adopt(struct gt_boxed *b);

/* Sums over the buffers that were read. */
struct gt_boxed_sum {
    uint64_t events;
    uint64_t torn; /* bytes of events that are not whole */
};

/* A copy of the whole events of a buffer. All of the buffer must be in the box. */
struct gt_buf *gt_boxed_copy(const struct gt_boxed *b, const struct gt_buf *buf,
                             struct gt_boxed_sum *sum);

/* Copies of the buffers of a generation; adds to *sum. false: the generation has no events. */
struct gt_boxed_generation {
    struct gt_buf *packed, *plain;
};
bool gt_boxed_generation(const struct gt_boxed *b, uint32_t gen, struct gt_boxed_generation *g,
                         struct gt_boxed_sum *sum);
