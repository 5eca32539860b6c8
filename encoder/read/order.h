/*
 * Events of many streams in one causal order: the earliest first, but for those that cannot have
 * happened yet by what was told so far; clocks of different processors may differ a little.
 */
#ifndef GT_ORDER_H
#define GT_ORDER_H

#include "bytes.h"
#include "trace.h"

/* The part of a file that belongs to one stream. */
struct gt_piece {
    struct gt_piece *next; /* of the same stream */
    const uint8_t *start, *end;
    uint64_t ts, seq;
};

/* What the readers of both families keep of a stream. */
struct gt_source {
    struct gt_stream stream; /* first: what others see */
    uint64_t id;             /* thread or P */
    struct gt_piece *first, *last;
    struct gt_bytes bytes;         /* the rest of the piece before `first` */
    uint64_t ts, seq;              /* of the last event */
    const struct gt_callers *call; /* v1: of the system call that begins */
    bool listed;
    uint64_t key; /* of the event that comes next */
    struct gt_happening next;
};

struct gt_sources {
    struct gt_source **source;
    size_t n, room;
    struct gt_memo by_id; /* id + 1 → source */
};

struct gt_source *gt_sources_get(struct gt_sources *all, uint64_t id);
void gt_source_append(struct gt_source *s, struct gt_piece piece);

/* Goes on to the stream's next piece; false: there is none. */
bool gt_source_next_piece(struct gt_trace *trace, struct gt_source *s);

/* The reader of a family: fills s->next and s->key; false when there is no more. */
typedef bool gt_next_fn(void *arg, struct gt_source *s);

/* Tells the audience all events of all sources. to_ns(arg, ts) converts times. */
void gt_order(struct gt_trace *trace, struct gt_sources *all, gt_next_fn *next,
              double (*to_ns)(void *arg, uint64_t ts), void *arg,
              const struct gt_audience *audience);

#endif
