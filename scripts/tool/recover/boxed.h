/* The black box of a process that is gone, read: nothing in it is taken for granted. */
#ifndef GT_BOXED_H
#define GT_BOXED_H

#include "encoder/buffers.h"
#include "encoder/live.h"

#include "encoder/base/memo.h"

#include <sys/stat.h>

struct gt_boxed {
    const char *path;
    struct stat file; /* what was read */
    const uint8_t *base;
    size_t size;
    const struct gt_box *box;
    const struct gt_live *live;
    const struct gt_format *format;
    struct gt_memo stacks, strings; /* by the addresses that they had */
};

/* Whether a file is one, by how it begins; *pid: of which process. */
bool gt_boxed_is(const char *path, uint64_t *pid);

/* As long as the name of a box without its ending, which is its trace's; 0: it has another one. */
int gt_boxed_trace_length(const char *name);

/* Ends the program with a message where that is none. */
void gt_boxed_open(struct gt_boxed *b, const char *path);

/* What the process had at that address; NULL: it is not in the box, or not all of it. */
const void *gt_boxed_at(const struct gt_boxed *b, uint64_t address, size_t size);

/* How far its trace's file was whole. */
const struct gt_live_whole *gt_boxed_whole(const struct gt_boxed *b);

/* The modules that it had loaded, and its stacks and strings, become those of this process. */
void gt_boxed_adopt(struct gt_boxed *b);

/* What was found. */
struct gt_boxed_sum {
    uint64_t events;
    uint64_t torn; /* bytes of events that are not whole */
};

/* A copy of what is whole in a buffer, all of which is in the box. */
struct gt_buf *gt_boxed_copy(const struct gt_boxed *b, const struct gt_buf *buf,
                             struct gt_boxed_sum *sum);

/*
 * What a generation has of buffers, as such copies; sum: added to. false: no events are of that
 * generation.
 */
struct gt_boxed_generation {
    struct gt_buf *packed, *plain;
};
bool gt_boxed_generation(const struct gt_boxed *b, uint32_t gen, struct gt_boxed_generation *g,
                         struct gt_boxed_sum *sum);

#endif
