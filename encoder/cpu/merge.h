/*
 * Merges the events of all threads in a closed generation into the order in which they happened.
 * That is by time, but never an effect before its cause, whatever the CPUs' clocks say. The rules
 * are those of Go's reader of v2 traces: a goroutine's starts and unblocks, and a P's starts, are
 * numbered.
 *
 * For formats that have no generations, and for what the kernel's records add, which changes the
 * events' numbers (sched.h). Drain side only.
 */
#pragma once

#include "encoder/cpu/strands.h"

/* A goroutine's state after the events merged so far. */
struct gt_merge_g {
    struct gt_merge_g *next; /* of its hash bucket, or free */
    struct gt_merge_stream *parked;
    uint64_t id;
    uint32_t gen; /* the generation in which seq counts */
    uint32_t seq;
    uint8_t state; /* enum gt_g_state */
    bool away;     /* its state is due to an absence: only its own thread, once back, ends it */
    /* What the format that is being written keeps about the goroutine. */
    bool known, v1_named; /* v1_named: it has a label, which may be "", whose id is 0 */
    uint32_t v1_seq, v1_p, v1_label;
    uint32_t out_seq;
    uint64_t out_ts; /* of the last event, in out_stream */
    uint32_t out_stream;
};

struct gt_merge_event {
    enum gt_event_type type;
    uint64_t ts; /* never less than that of the event before */
    uint32_t m;
    uint32_t stream;      /* its number, of gt_merge_streams */
    bool added;           /* for an absence; its sequence numbers mean nothing */
    bool away;            /* in a P's status: its thread is not on a CPU */
    uint32_t p;           /* the thread's P, or GT_MERGE_NO_P */
    struct gt_merge_g *g; /* the goroutine it is about, else the one on the thread, or NULL */
    uint8_t was;          /* g's state before */
    uint64_t arg[GT_EVENT_ARGS_MAX];
};

#define GT_MERGE_NO_P 65536u

/* What one generation of a trace hands on to the next. */
struct gt_merge;
extern struct gt_merge gt_merge_for_v1, gt_merge_for_sched;

/* Forgets the previous trace. */
void gt_merge_reset(struct gt_merge *which);
void gt_merge_after_fork(void);

/*
 * An absence: a time in which a thread was not on a CPU. from 0: since before the generation; to
 * GT_ABSENT: until after its end. Each absence adds a ProcStop and, with the CPU's number as the
 * P, a ProcStart to the thread's events.
 */
#define GT_ABSENT UINT64_MAX
#define GT_NO_CPU UINT32_MAX /* it is not known which one */
struct gt_absence {
    uint64_t from, to;
    uint32_t stack : 31;    /* where it lost its CPU; 0: where it was seen last */
    uint32_t preempted : 1; /* the thread was runnable */
    uint32_t cpu;           /* the one it came back on */
};

/* The absences of thread m in the generation, in order. */
typedef const struct gt_absence *gt_absences_fn(uint32_t m, size_t *n);

typedef void gt_merge_fn(const struct gt_merge_event *ev);

/* The most streams, one a thread, that the generation can have. */
size_t gt_merge_streams(const struct gt_buf *packed, const struct gt_buf *plain);

/*
 * Calls fn for each event of generation gen, which is given as two lists of buffers. Buffers of
 * `packed` hold whole batches with their headers, buffers of `plain` one batch each. 0, or -errno
 * if the events contradict each other; then fn was called for a part of them. Many events take
 * long: fn polls the kernel's rings where there may be some (gt_watch_meanwhile).
 */
int gt_merge(struct gt_merge *which, uint32_t gen, const struct gt_buf *packed,
             const struct gt_buf *plain, gt_absences_fn *absences, gt_merge_fn *fn);

/*
 * From here on a generation whose events contradict each other is merged too, with the fewest
 * changes. gt_merge_mended says how many events were left out or changed. For what a killed
 * process leaves, and for traces the end of which is missing.
 */
void gt_merge_be_lenient(void);
uint64_t gt_merge_mended(void);

/* The time of the last event, or the later one that gt_merge_move_on has set. */
uint64_t gt_merge_time(const struct gt_merge *which);
void gt_merge_move_on(struct gt_merge *which, uint64_t ts);

/*
 * The entry of goroutine id, for a caller that knows its state from elsewhere. A new entry has no
 * state. NULL: no memory.
 */
struct gt_merge_g *gt_merge_goroutine(struct gt_merge *which, uint64_t id);
