/*
 * A closed generation's events, of all threads, one after the other as they happened: by time, but
 * never an effect before its cause, whatever the CPUs' clocks say. The rules are those of Go's
 * reader of v2 traces: a goroutine's starts and unblocks, and a P's starts, are numbered.
 *
 * For formats that have no generations; and for what the kernel tells, which changes the events'
 * numbers (sched.h). Drain side only.
 */
#ifndef GT_MERGE_H
#define GT_MERGE_H

#include "encoder/buffers.h"

/* A goroutine, as far as the events merged so far say. */
struct gt_merge_g {
    struct gt_merge_g *next; /* of its hash bucket, or free */
    struct gt_merge_stream *parked;
    uint64_t id;
    uint32_t gen; /* in which seq counts */
    uint32_t seq;
    uint8_t state; /* enum gt_g_state */
    bool away;     /* that is for an absence: nobody ends it but its thread, which is back */
    /* What the format being written keeps about it. */
    bool known;
    uint32_t v1_seq, v1_p, v1_label;
    uint32_t out_seq;
    uint64_t out_ts; /* of the last event, which was in that stream */
    uint32_t out_stream;
};

struct gt_merge_event {
    enum gt_event_type type;
    uint64_t ts; /* never less than that of the event before */
    uint32_t m;
    uint32_t stream;      /* its number, of gt_merge_streams */
    bool added;           /* for an absence; its numbers count for nothing */
    bool away;            /* of a P's status: its thread is not on a CPU */
    uint32_t p;           /* of the thread, GT_MERGE_NO_P if it has none */
    struct gt_merge_g *g; /* the goroutine it is about, else the one on the thread, or NULL */
    uint8_t was;          /* g's state before */
    uint64_t arg[GT_EVENT_ARGS_MAX];
};

#define GT_MERGE_NO_P 65536u

/* What goes on from one generation of a trace to the next. */
struct gt_merge;
extern struct gt_merge gt_merge_for_v1, gt_merge_for_sched;

/* Forgets the trace before. */
void gt_merge_reset(struct gt_merge *which);
void gt_merge_after_fork(void);

/*
 * When a thread was not on a CPU. from 0: since before the generation; to GT_ABSENT: at its end.
 * Each adds a ProcStop and, with the number of the CPU for a P, a ProcStart to its events.
 */
#define GT_ABSENT UINT64_MAX
#define GT_NO_CPU UINT32_MAX /* it is not known which */
struct gt_absence {
    uint64_t from, to;
    uint32_t stack : 31;    /* where that was; 0: where the thread was seen last */
    uint32_t preempted : 1; /* it could have gone on */
    uint32_t cpu;           /* on which it was back */
};

/* Those of thread m in the generation, in their order. */
typedef const struct gt_absence *gt_absences_fn(uint32_t m, size_t *n);

typedef void gt_merge_fn(const struct gt_merge_event *ev);

/* How many streams there are, at most: threads. */
size_t gt_merge_streams(const struct gt_buf *packed, const struct gt_buf *plain);

/*
 * Calls fn for each event of generation gen, given as two lists of buffers: those of `packed` hold
 * whole batches with their headers, those of `plain` one batch each. 0, or -errno when the events
 * contradict each other (then a part of them was given to fn).
 */
int gt_merge(struct gt_merge *which, uint32_t gen, const struct gt_buf *packed,
             const struct gt_buf *plain, gt_absences_fn *absences, gt_merge_fn *fn);

/* The time of the last event, or to which it was moved on. */
uint64_t gt_merge_time(const struct gt_merge *which);
void gt_merge_move_on(struct gt_merge *which, uint64_t ts);

/* For who knows of it otherwise; new, it has no state. NULL: no memory. */
struct gt_merge_g *gt_merge_goroutine(struct gt_merge *which, uint64_t id);

#endif
