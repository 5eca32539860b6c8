/*
 * Reads a trace file. Reports its events in causal order and in the terms of v2, whatever the
 * file's format, with the names that they refer to. Incomplete parts are left out and counted.
 *
 * Readers print nothing, and never end the program but where there is no memory: then they call
 * gt_reader_no_memory (need.h), which does.
 */
#pragma once

#include "bytes.h"
#include "contents.h"
#include "locks.h"

#include "encoder/format/format.h"
#include "encoder/format/origin.h"
#include "encoder/format/usage.h"

#define GT_NO_THREAD UINT64_MAX
#define GT_NO_P UINT64_MAX

/* A sequence of events: a thread's batches (v2) or a P's (v1). */
struct gt_stream {
    uint64_t thread; /* the kernel's number, or GT_NO_THREAD */
    uint64_t g;      /* the goroutine that runs here; 0: none */
    uint64_t p;      /* the P that it has or had last; v1: the P that it is */
    bool says_p;     /* the last event here was the status of its P */
};

struct gt_happening {
    enum gt_event_type type;
    struct gt_stream *on; /* of a status: the stream where the goroutine runs */
    bool part; /* a part, but not the first, of an event of the file: it has no number of its own */
    bool names;  /* `text` is the goroutine's label, which may be "" */
    uint64_t ts; /* in units of the trace's clock */
    uint64_t
        own_ns; /* ts in ns: earlier than the time of its report, if it was not possible at ts */
    uint64_t g, seq;                      /* the goroutine that it is done to; seq 0: no number */
    uint64_t thread;                      /* of a status */
    uint64_t p;                           /* of a P's start, or of its status unless it is idle */
    uint64_t task, parent;                /* of events that the program reports itself; 0: none */
    uint64_t bytes;                       /* the size of the heap */
    enum gt_g_state state;                /* of a status */
    const char *text;                     /* the reason, label, name or key of a log; or "" */
    const char *more;                     /* a log's message; or "" */
    const struct gt_callers *stack, *its; /* NULL: none; its: a new goroutine's */
    uint64_t arg[GT_EVENT_ARGS_MAX];      /* v2's arguments, but not ids of strings and stacks */
};

/* A CPU sample. */
struct gt_cpu_sample {
    uint64_t g, thread, p; /* thread: GT_NO_THREAD: not known */
    const struct gt_callers *stack;
};

/* The functions to which a trace is reported. */
struct gt_audience { /* a NULL one is not called */
    /* Whether the event can have happened now; if not, other events come first. */
    bool (*possible)(void *arg, const struct gt_happening *event);
    void (*tell)(void *arg, const struct gt_happening *event, uint64_t ns);
    /*
     * CPU samples. Without samples_in_time the samples of a generation come after all its events.
     */
    bool samples_in_time;
    void (*sample)(void *arg, const struct gt_cpu_sample *sample, uint64_t ns);
    /* A row of an account, after all events before its time; length: of the row's time. */
    void (*account)(void *arg, const struct gt_account_row *row, uint64_t ns, uint64_t length);
    void *arg;
    void (*gap)(void *arg); /* between two parts of the file that are not adjacent */
};

/* A part of a v2 file: complete generations. */
struct gt_part {
    const uint8_t *start, *end;
    bool accounts_only; /* their events are not reported */
};

struct gt_trace {
    const char *path;
    const char *named; /* a copy with names, read instead of it; NULL: none */
    const uint8_t *base;
    size_t size;       /* of the file that is read */
    size_t file_bytes; /* of the file at path */
    const struct gt_format *format;
    /* After gt_trace_read: */
    uint64_t events, kinds[64]; /* by type in the format */
    uint64_t experimental;      /* of Go's experiments, which are not reported */
    uint64_t event_bytes;       /* batches of events, with headers; without tables */
    uint64_t generations;       /* v2 */
    uint64_t lost;              /* bytes of an incomplete piece at the end */
    bool whole;                 /* the file says that nothing is missing (GT_WHOLE) */
    uint64_t odd;               /* events that are not possible in any order */
    uint64_t ns;                /* from the first event to the last */
    uint64_t wall_s, wall_ns;   /* time of day at the trace's beginning; 0: not known */
    uint64_t start;             /* the beginning, by the trace's clock */
    uint64_t mono_ns;           /* the beginning, by CLOCK_MONOTONIC; 0: not known */
    struct gt_origin origin;    /* ticks 0: not known */
    const char *setup;          /* see setup.h; NULL: not known */
    double ns_per_unit;         /* of its clock, by what is read so far; v1: by its end */
    bool ours;                  /* not by a Go program */
    bool of_go;                 /* written by us from a Go program's trace (GT_OF_GO) */
    struct gt_contents contents;
    const char **own; /* strings of the tracer besides its events; v2: of the generation */
    size_t n_own;
    struct gt_blocked_row *blocked; /* threads that wait at its end */
    size_t n_blocked;
    struct gt_signals_row *signals;
    size_t n_signals;
    struct gt_brief_row *brief;
    size_t n_brief;
    const char **remarks; /* other texts of the tracer that no event uses, each once */
    size_t n_remarks;
    struct gt_memo remarked;
    char damage[64]; /* what ended the reading early; "": nothing */
    /*
     * Called as reading goes on, with the bytes read before and now; set between open and read, or
     * NULL.
     */
    void (*progress)(const struct gt_trace *trace, uint64_t before, uint64_t now);
    uint64_t done;
    /*
     * ns in a unit of the clock, instead of the file's own; set before the first event. 0: the
     * file's own.
     */
    double scale;
    /* The parts to be read, with the first generation at least; set as `scale` is. NULL: all. */
    const struct gt_part *parts;
    size_t n_parts;
};

/*
 * Maps a file. Leaves `bytes` unchanged if the file has fewer than `least` bytes, or is not
 * regular. NULL, or why it cannot be opened.
 */
const char *gt_trace_map(struct gt_bytes *bytes, const char *path, size_t least);

/* A part of the file has been read, and need not stay in memory. It may be read again. */
void gt_trace_forget(const struct gt_trace *trace, const uint8_t *start, const uint8_t *end);

/* Opens the file, which stays mapped, and finds out its format. NULL, or why that failed. */
const char *gt_trace_open(struct gt_trace *trace, const char *path);

/* Reads the whole trace, once. false: it is damaged, and only a part of it was reported. */
bool gt_trace_read(struct gt_trace *trace, const struct gt_audience *audience);

/*
 * Reads a trace step by step, for a caller that reads several side by side. gt_trace_begin reads
 * what is before the first event. gt_trace_next says when the next event is reported (ns); false:
 * there are no more. gt_trace_tell reports it, and what is due before it. gt_trace_end reports the
 * rest, ends the reading, and returns what gt_trace_read does.
 */
struct gt_reader;
struct gt_reader *gt_trace_begin(struct gt_trace *trace, const struct gt_audience *audience);
bool gt_trace_next(struct gt_reader *r, uint64_t *ns);
void gt_trace_tell(struct gt_reader *r);
bool gt_trace_end(struct gt_reader *r);

/*
 * ns in a unit of the clock, by the end of an open v2 file, where it was measured over the longest
 * time; 0: not known.
 */
double gt_trace_last_scale(const struct gt_trace *trace);

/* The name of an event type of this format's family in Go's sources, or NULL. */
const char *gt_trace_kind(const struct gt_format *format, unsigned type);

/*
 * The readers of the two families, between which trace.c chooses. gt_trace_next_v2: as
 * gt_order_next.
 */
void gt_trace_begin_v1(struct gt_reader *r);
void gt_trace_begin_v2(struct gt_reader *r);
bool gt_trace_next_v2(struct gt_reader *r, uint64_t *ns);
void gt_trace_end_v1(struct gt_reader *r);
void gt_trace_end_v2(struct gt_reader *r);
