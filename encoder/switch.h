/*
 * Moving writers from one generation to the next: rules 1 and 2 of writer.h. The drain side's half
 * (gt_switch_begin, gt_switch_all) is for one thread at a time.
 */
#ifndef GT_SWITCH_H
#define GT_SWITCH_H

#include "writer.h"

/* Registers with membarrier(2), or makes writers fence. Before recording starts; again in a
 * forked child. */
void gt_switch_init(void);

/* Hands w's buffer to the queue of `gen`, or back to the pool when nothing is in it. */
void gt_switch_retire(struct gt_writer *w, uint32_t gen);

void gt_switch_install(struct gt_writer *w, struct gt_buf *buf);

/*
 * The owner's half; not busy. Afterwards w is in a newer generation, or whoever was switching it
 * is done. false: no memory for a buffer, or something that it needs is held by a thread that does
 * not go on (GT_LOCK_PATIENCE_NS).
 */
bool gt_switch_self(struct gt_writer *w);

/*
 * Announces generation `next` (0: recording ends) and moves every writer there. Afterwards nobody
 * writes the old one any more and all its buffers are queued. The statuses of writers that did not
 * move by themselves are given to `emit`, a batch each, of generation `told`; they belong into the
 * file before any buffer of that. told: `next`; or where nothing is written in that, the one with
 * which the file ends; 0: no statuses.
 */
void gt_switch_all(uint32_t next, uint32_t told, void (*emit)(void *arg, struct gt_buf *batch),
                   void *arg);

/*
 * When gt_switch_all has waited long enough for writers that are inside, by CLOCK_MONOTONIC: they
 * are given up. 0: never. A thread of the program's that switches may be what they wait for.
 */
void gt_switch_set_deadline(uint64_t ns);

/*
 * Whether every thread was seen outside of our code, by `inside`, since `mark` changed last. One
 * that may have jumped is not waited for: see gt_era_pin_all.
 */
bool gt_switch_all_outside(uint32_t mark, bool (*inside)(const struct gt_writer *w));

/* Events written by all writers so far. */
uint64_t gt_switch_events(void);

void gt_switch_after_fork(void);

/*
 * writer.c, with w->g.lock held and w in gen or switching. close: what is due in w's own stream
 * before gen ends. statuses: of w's P and goroutine in gen, where they do not stand yet.
 */
void gt_ev_close_locked(struct gt_writer *w, uint32_t gen);
void gt_ev_renew_locked(struct gt_writer *w); /* what its state refers to: see renewal.h */
void gt_ev_statuses_locked(struct gt_writer *w, uint32_t gen);

/*
 * writer.c: the status in gen of a goroutine that was created in an earlier generation and does not
 * run yet, through a writer that is not its own.
 */
static inline bool gt_ev_is_unstarted(const struct gt_g *g)
{
    return atomic_load_explicit(&g->unstarted, memory_order_acquire);
}
void gt_ev_status_unstarted(struct gt_writer *w, struct gt_g *g, uint32_t gen);

/* writer.c: writes the beginning of an announced call (rule 5); pinned, or as close. */
void gt_ev_call_show(struct gt_writer *w);

/* writer.c: in a forked child, nothing has happened yet. */
void gt_writer_after_fork(void);

#endif
