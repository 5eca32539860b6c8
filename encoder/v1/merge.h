/*
 * A closed generation's events, of all threads, one after the other as they happened: by time, but
 * never an effect before its cause, whatever the CPUs' clocks say. The rules are those of Go's
 * reader of v2 traces: a goroutine's starts and unblocks, and a P's starts, are numbered.
 *
 * For formats that have no generations. Drain side only.
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
    /* What the format being written keeps about it. */
    bool known;
    uint32_t v1_seq, v1_p, v1_label;
};

struct gt_merge_event {
    enum gt_event_type type;
    uint64_t ts; /* never less than that of the event before */
    uint32_t m;
    uint32_t p;           /* of the thread, GT_MERGE_NO_P if it has none */
    struct gt_merge_g *g; /* the goroutine it is about, else the one on the thread, or NULL */
    uint8_t was;          /* g's state before */
    uint64_t arg[GT_EVENT_ARGS_MAX];
};

#define GT_MERGE_NO_P 65536u

/* Forgets the trace before. */
void gt_merge_reset(void);
void gt_merge_after_fork(void);

/*
 * Calls fn for each event of generation gen, given as two lists of buffers: those of `packed` hold
 * whole batches with their headers, those of `plain` one batch each. 0, or -errno when the events
 * contradict each other (then a part of them was given to fn).
 */
int gt_merge(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
             void (*fn)(const struct gt_merge_event *ev));

/* The time of the last event, or to which it was moved on. */
uint64_t gt_merge_time(void);
void gt_merge_move_on(uint64_t ts);

/* Calls fn for every goroutine that runs, and that time. */
void gt_merge_running(void (*fn)(struct gt_merge_g *g, uint64_t ts));

#endif
