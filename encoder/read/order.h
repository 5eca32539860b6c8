/*
 * Events of many streams in one causal order: the earliest first, but for those that cannot have
 * happened yet by what was told so far; clocks of different processors may differ a little.
 */
#ifndef GT_ORDER_H
#define GT_ORDER_H

#include "v1_lines.h"
#include "v1_records.h"

#include "encoder/base/queue.h"

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
    uint64_t switch_to;            /* v2: the goroutine that a coroutine switches to; or 0 */
    enum { SWITCHED, STARTS, LEAVES } switches; /* v2: what of that comes next */
    bool switch_ends;                           /* who switches ends, too */
    struct gt_v1_entry ahead;                   /* v1: the event after the next, if that is known */
    bool has_ahead;
    struct gt_stream *place; /* v1 by Go: the thread that has the P */
    uint64_t g;              /* that runs there */
    bool calls, left;        /* its call is told; it is known to last, and has the P no more */
    enum { NOTHING_MORE, RETURNS, IS_TAKEN } then; /* what else is told before the next event */
    uint64_t key;                                  /* of the event that comes next */
    struct gt_happening next;
};

/* A sample of the CPU that was read and perhaps not told yet. */
struct gt_timed_sample {
    uint64_t ts;
    struct gt_cpu_sample its;
};

/* v1 by Go programs: see v1_go.h. */
struct gt_v1_go {
    struct gt_memo threads; /* number + 1 → struct gt_stream */
    struct gt_memo calls;   /* goroutine → the same, of its last call */
    uint64_t unknown;       /* threads that have no number */
    struct gt_v1_exit {
        uint64_t ts, g, seq;
    } * exits; /* ends of calls */
    size_t n_exits, room_exits, next_exit;
};

/* The reader of either family. */
struct gt_reader {
    struct gt_trace *trace;
    const struct gt_audience *audience;
    struct gt_source **source; /* they live as long as the trace */
    size_t n, room;
    struct gt_memo by_id;         /* id + 1 → source */
    struct gt_memo texts, stacks; /* by id; v2: of the generation */
    struct gt_account_rows accounts;
    struct gt_timed_sample *sample;
    size_t n_samples, room_samples, told_samples;
    double ns_per_unit;
    uint64_t start;
    /* Fills s->next and s->key; false when there is no more. */
    bool (*next)(struct gt_reader *r, struct gt_source *s);
    struct gt_queue queue; /* of sources that have a next event */
    bool ready;            /* the first of it comes next */
    /* v2: */
    size_t part;
    struct gt_bytes rest;         /* of that, which is not read */
    const uint8_t *begin, *until; /* of the generation that is read */
    /* v1: */
    uint64_t end;
    struct gt_piece *stack_records;  /* to be read when all strings are known */
    struct gt_piece *sample_records; /* and when all stacks are */
    struct gt_v1_lines lines;        /* Go 1.5 */
    struct gt_v1_go go;
};

void gt_reader_keep_text(struct gt_reader *r, uint64_t id, const struct gt_bytes *text);
void gt_reader_keep_stack(struct gt_reader *r, uint64_t id, const struct gt_where *frames,
                          uint64_t n);

/*
 * The same for what the tracer alone says; what that says of the trace's end, or of nothing that is
 * known here, is kept there.
 */
void gt_reader_keep_own_text(struct gt_reader *r, uint64_t id, const struct gt_bytes *text);

/* Where it was recorded, from the numbers that say so. */
void gt_reader_keep_origin(struct gt_reader *r, struct gt_bytes numbers);

/* "" and NULL: not known. */
const char *gt_reader_text(struct gt_reader *r, uint64_t id);
const struct gt_callers *gt_reader_stack(const struct gt_reader *r, uint64_t id);

double gt_reader_ns(const struct gt_reader *r, uint64_t ts);

struct gt_source *gt_reader_source(struct gt_reader *r, uint64_t id);
void gt_source_append(struct gt_source *s, struct gt_piece piece);

/* Goes on to the stream's next piece; false: there is none. */
bool gt_source_next_piece(struct gt_trace *trace, struct gt_source *s);

/* One that was read, and is told where the audience wants it. */
void gt_order_keep_sample(struct gt_reader *r, uint64_t ts, const struct gt_cpu_sample *sample);

/* All that were kept are of the past. */
void gt_order_tell_samples(struct gt_reader *r);

/* Tells what accounts say until ts. */
void gt_order_accounts(struct gt_reader *r, uint64_t ts);

/* From here on events of all sources are told, and samples that were kept. */
void gt_order_begin(struct gt_reader *r);

/* When the next one is told; false: there is no more. */
bool gt_order_next(struct gt_reader *r, uint64_t *ns);

/* Tells it. */
void gt_order_tell(struct gt_reader *r);

#endif
