/*
 * Puts the events of many streams into one causal order. The earliest event comes first, but not
 * before it can have happened after the events so far: clocks of different processors may differ a
 * little.
 */
#pragma once

#include "account_rows.h"
#include "trace.h"
#include "v1_lines.h"
#include "v1_records.h"

#include "encoder/base/queue.h"

/* A part of a file that belongs to one stream. */
struct gt_piece {
    struct gt_piece *next; /* of the same stream */
    const uint8_t *start, *end;
    uint64_t ts, seq;
};

/* What the readers of both families keep of a stream. */
struct gt_source {
    struct gt_stream stream; /* first member: what the audience sees */
    uint64_t id;             /* thread or P */
    struct gt_piece *first, *last;
    struct gt_bytes bytes;         /* the rest of the piece before `first` */
    uint64_t ts, seq;              /* of the last event */
    const struct gt_callers *call; /* v1: stack of the system call that begins */
    uint64_t switch_to;            /* v2: the goroutine that a coroutine switches to; or 0 */
    enum { SWITCHED, STARTS, LEAVES } switches; /* v2: the next step of a coroutine switch */
    bool switch_ends;                           /* the goroutine that switches ends, too */
    struct gt_v1_entry ahead;                   /* v1: the event after the next one */
    bool has_ahead;
    struct gt_stream *place; /* v1 by Go: the thread that has the P */
    uint64_t g;              /* the goroutine that runs there */
    bool calls, left;        /* its call was reported; the call lasts, without the P */
    enum { NOTHING_MORE, RETURNS, IS_TAKEN } then; /* also reported before the next event */
    uint64_t key;                                  /* of the next event */
    struct gt_happening next;
};

/* A CPU sample that was read, and perhaps not reported yet. */
struct gt_timed_sample {
    uint64_t ts;
    struct gt_cpu_sample its;
};

/* v1 by Go programs: see v1_go.h. */
struct gt_v1_go {
    struct gt_memo threads; /* number + 1 → struct gt_stream */
    struct gt_memo calls;   /* goroutine → the stream of its last call */
    uint64_t unknown;       /* how many threads have no number */
    struct gt_v1_exit {
        uint64_t ts, g, seq;
    } * exits; /* ends of calls */
    size_t n_exits, next_exit;
};

/* The reader of either family. */
struct gt_reader {
    struct gt_trace *trace;
    const struct gt_audience *audience;
    struct gt_source **source; /* sources live as long as the trace */
    size_t n;
    struct gt_memo by_id;         /* id + 1 → source */
    struct gt_memo texts, stacks; /* by id; v2: in the generation */
    struct gt_account_rows accounts;
    struct gt_timed_sample *sample;
    size_t n_samples, told_samples;
    double ns_per_unit;
    uint64_t start;
    /* Fills s->next and s->key; false: there are no more events. */
    bool (*next)(struct gt_reader *r, struct gt_source *s);
    struct gt_queue queue; /* of sources that have a next event */
    bool ready;            /* its first event is the next one */
    /* v2: */
    size_t part;
    struct gt_bytes rest;         /* the rest of that part */
    const uint8_t *begin, *until; /* the generation being read */
    /* v1: */
    uint64_t end;
    struct gt_piece *stack_records;  /* read when all strings are known */
    struct gt_piece *sample_records; /* read when all stacks are known */
    struct gt_v1_lines lines;        /* Go 1.5 */
    struct gt_v1_go go;
};

void gt_reader_keep_text(struct gt_reader *r, uint64_t id, const struct gt_bytes *text);
void gt_reader_keep_stack(struct gt_reader *r, uint64_t id, const struct gt_where *frames,
                          uint64_t n);

/*
 * Keeps a text that only the tracer can have written. Rows about the trace's end, and remarks that
 * are not known here, also go into the trace.
 */
void gt_reader_keep_own_text(struct gt_reader *r, uint64_t id, const struct gt_bytes *text);

/* Keeps where the trace was recorded, from the numbers of its origin. */
void gt_reader_keep_origin(struct gt_reader *r, struct gt_bytes numbers);

/* Keeps with what the trace was recorded: the text of its setup, to a zero byte or its end. */
void gt_reader_keep_setup(struct gt_reader *r, const void *text, size_t size);

/* The text or stack with that id; "" or NULL: not known. */
const char *gt_reader_text(struct gt_reader *r, uint64_t id);
const struct gt_callers *gt_reader_stack(const struct gt_reader *r, uint64_t id);

double gt_reader_ns(const struct gt_reader *r, uint64_t ts);

struct gt_source *gt_reader_source(struct gt_reader *r, uint64_t id);
void gt_source_append(struct gt_source *s, struct gt_piece piece);

/* Goes on to the stream's next piece; false: there is none. */
bool gt_source_next_piece(struct gt_trace *trace, struct gt_source *s);

/* Keeps a sample that was read, and reports it when the audience wants samples. */
void gt_order_keep_sample(struct gt_reader *r, uint64_t ts, const struct gt_cpu_sample *sample);

/* Reports all samples that were kept: they are of the past. */
void gt_order_tell_samples(struct gt_reader *r);

/* Reports the rows of accounts up to ts. */
void gt_order_accounts(struct gt_reader *r, uint64_t ts);

/* Begins to report the events of all sources, and the samples that were kept. */
void gt_order_begin(struct gt_reader *r);

/* Finds the next event, and the time at which it is reported; false: there are no more. */
bool gt_order_next(struct gt_reader *r, uint64_t *ns);

/* Reports the next event, and what is due before it. */
void gt_order_tell(struct gt_reader *r);
