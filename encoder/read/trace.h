/*
 * A trace file, read: its events in causal order and in the terms of v2, whatever its format, and
 * with the names that they refer to. What is not whole is left out and counted.
 */
#ifndef GT_TRACE_H
#define GT_TRACE_H

#include "account.h"
#include "bytes.h"
#include "contents.h"
#include "locks.h"

#include "encoder/format.h"
#include "encoder/origin.h"

#define GT_NO_THREAD UINT64_MAX
#define GT_NO_P UINT64_MAX

/* Where events come one after the other: a thread's batches (v2) or a P's (v1). */
struct gt_stream {
    uint64_t thread; /* as the kernel numbers them, or GT_NO_THREAD */
    uint64_t g;      /* the goroutine that runs here, 0: none */
    uint64_t p;      /* the P that it has or had last, or is (v1) */
    bool says_p;     /* the last event here was the status of its P */
};

struct gt_happening {
    enum gt_event_type type;
    struct gt_stream *on; /* of a status: where the goroutine runs */
    bool part; /* of what the file has as one event, and told before: it has no number of its own */
    uint64_t ts; /* of the trace's clock */
    uint64_t
        own_ns; /* the same in ns: less than when it is told, where that was not possible then */
    uint64_t g, seq;                      /* of the goroutine that it is done to; seq 0: none */
    uint64_t thread;                      /* of a status */
    uint64_t p;                           /* of a P's start, or its status where it is not idle */
    uint64_t task, parent;                /* of what the program says of itself; 0: none */
    uint64_t bytes;                       /* of the heap */
    enum gt_g_state state;                /* of a status */
    const char *text;                     /* the reason, label or name, a log's key, else "" */
    const char *more;                     /* what the log says, else "" */
    const struct gt_callers *stack, *its; /* NULL: none; its: of a new goroutine */
    uint64_t arg[GT_EVENT_ARGS_MAX];      /* in v2's words, but for strings and stacks: ids there */
};

/* A sample of the CPU. */
struct gt_cpu_sample {
    uint64_t g, thread, p; /* thread: GT_NO_THREAD where that is not told */
    const struct gt_callers *stack;
};

/* Who is told. */
struct gt_audience { /* NULL: that is not asked, or not wanted */
    /* Whether the event can have happened now; if not, others come first. */
    bool (*possible)(void *arg, const struct gt_happening *event);
    void (*tell)(void *arg, const struct gt_happening *event, uint64_t ns);
    /* Of the CPU. Unless that is asked for, a generation's are told when all else of it is. */
    bool samples_in_time;
    void (*sample)(void *arg, const struct gt_cpu_sample *sample, uint64_t ns);
    /* Of an account, after all that was before its time; length: from its beginning. */
    void (*account)(void *arg, const struct gt_account_row *row, uint64_t ns, uint64_t length);
    void *arg;
    void (*gap)(void *arg); /* between two parts of the file that are read */
};

/* A part of a v2 file, of whole generations. */
struct gt_part {
    const uint8_t *start, *end;
    bool accounts_only; /* of their events none is told */
};

struct gt_trace {
    const char *path;
    const char *named; /* a copy with names, which is read instead; NULL: none */
    const uint8_t *base;
    size_t size;       /* of what is read */
    size_t file_bytes; /* of the file at path */
    const struct gt_format *format;
    /* After gt_trace_read: */
    uint64_t events, kinds[64]; /* of the format's own types */
    uint64_t experimental;      /* of experiments of Go's, which are not told */
    uint64_t event_bytes;       /* batches of events, with their headers; not tables */
    uint64_t generations;       /* v2 */
    uint64_t lost;              /* bytes at the end that are no whole piece */
    bool whole;                 /* says that nothing is missing (GT_WHOLE) */
    uint64_t odd;               /* events that no order makes possible */
    uint64_t ns;                /* from the first event to the last */
    uint64_t wall_s, wall_ns;   /* time of day when it began; 0: not known */
    uint64_t start;             /* that time, of the trace's clock */
    uint64_t mono_ns;           /* and CLOCK_MONOTONIC; 0: not known */
    struct gt_origin origin;    /* ticks 0: not known */
    double ns_per_unit;         /* of its clock, as far as it is read; v1: as its end says */
    bool ours;                  /* not by a program of Go's */
    bool of_go;                 /* written by us, of a trace by such a program (GT_OF_GO) */
    struct gt_contents contents;
    const char **own; /* what the tracer says beside its events: strings, in v2 of the generation */
    size_t n_own, room_own;
    struct gt_blocked_row *blocked; /* when it ends */
    size_t n_blocked, room_blocked;
    struct gt_signals_row *signals;
    size_t n_signals, room_signals;
    const char **remarks; /* what else the tracer says, texts that no event uses: each once */
    size_t n_remarks, room_remarks;
    struct gt_memo remarked;
    char damage[64]; /* "": none that ended the reading */
    /* How far reading is, in bytes read before and now; set between open and read, or NULL. */
    void (*progress)(const struct gt_trace *trace, uint64_t before, uint64_t now);
    uint64_t done;
    /* ns in a unit of its clock, whatever it says of that; set before events are told. 0: as it
     * says.
     */
    double scale;
    /* What alone is to be read, the first generation at least; set as that. NULL: all. */
    const struct gt_part *parts;
    size_t n_parts;
};

/* Maps a file of at least so many bytes; else `bytes` stays. NULL, or why it is not opened. */
const char *gt_trace_map(struct gt_bytes *bytes, const char *path, size_t least);

/* That part of the file is read, and need not stay in memory; it may be read again. */
void gt_trace_forget(const struct gt_trace *trace, const uint8_t *start, const uint8_t *end);

/* Opens the file, which stays mapped, and finds out its format. NULL, or why that failed. */
const char *gt_trace_open(struct gt_trace *trace, const char *path);

/* Reads all of it, once. false: it is damaged, and what was told is a part of it. */
bool gt_trace_read(struct gt_trace *trace, const struct gt_audience *audience);

/*
 * The same step by step, for who reads several side by side. Reads what is before the first event;
 * says when the next one is told, ns, false: there is none; tells it, with all that is to be told
 * before; tells what is left, as gt_trace_read, and ends the reading.
 */
struct gt_reader;
struct gt_reader *gt_trace_begin(struct gt_trace *trace, const struct gt_audience *audience);
bool gt_trace_next(struct gt_reader *r, uint64_t *ns);
void gt_trace_tell(struct gt_reader *r);
bool gt_trace_end(struct gt_reader *r);

/*
 * ns in a unit of the clock, as the end of an open v2 file says, by which that was measured over
 * the longest time; 0: not known.
 */
double gt_trace_last_scale(const struct gt_trace *trace);

/* What Go's sources call an event of this format's family, or NULL. */
const char *gt_trace_kind(const struct gt_format *format, unsigned type);

/* The two families; trace.c chooses. next: whether there is another event, as gt_order_next. */
void gt_trace_begin_v1(struct gt_reader *r);
void gt_trace_begin_v2(struct gt_reader *r);
bool gt_trace_next_v2(struct gt_reader *r, uint64_t *ns);
void gt_trace_end_v1(struct gt_reader *r);
void gt_trace_end_v2(struct gt_reader *r);

#endif
