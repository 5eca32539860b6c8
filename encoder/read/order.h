/*
 * Events of many streams in one causal order: the earliest first, but for those that cannot have
 * happened yet by what was told so far; clocks of different processors may differ a little.
 */
#ifndef GT_ORDER_H
#define GT_ORDER_H

#include "v1_lines.h"
#include "v1_records.h"

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
    double ns_per_unit;
    uint64_t start;
    /* v1: */
    uint64_t end;
    struct gt_piece *stack_records; /* to be read when all strings are known */
    struct gt_piece *samples; /* when all goroutines are: they stand where P 0 happens to be */
    struct gt_v1_lines lines; /* Go 1.5 */
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

/* "" and NULL: not known. */
const char *gt_reader_text(struct gt_reader *r, uint64_t id);
const struct gt_callers *gt_reader_stack(const struct gt_reader *r, uint64_t id);

double gt_reader_ns(const struct gt_reader *r, uint64_t ts);

struct gt_source *gt_reader_source(struct gt_reader *r, uint64_t id);
void gt_source_append(struct gt_source *s, struct gt_piece piece);

/* Goes on to the stream's next piece; false: there is none. */
bool gt_source_next_piece(struct gt_trace *trace, struct gt_source *s);

/* Tells what accounts say until ts. */
void gt_order_accounts(struct gt_reader *r, uint64_t ts);

/* Tells all events of all sources. next fills s->next and s->key; false when there is no more. */
void gt_order(struct gt_reader *r, bool (*next)(struct gt_reader *r, struct gt_source *s));

#endif
