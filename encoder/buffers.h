/*
 * 64 KiB event buffers: a pool, and two queues of filled ones, one for each of the two generations
 * that can be open at a time. Every buffer holds events of one M: a batch, or, cut where it says
 * so, several.
 *
 * No locks: any thread, any context.
 */
#ifndef GT_BUFFERS_H
#define GT_BUFFERS_H

#include "format.h"

#include "encoder/base/freelist.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_CUTS_MAX 40u

struct gt_buf {
    struct gt_free free;
    struct gt_buf *next;
    uint32_t gen;  /* 0: nothing in it is of the trace, or not yet */
    uint32_t m;    /* GT_BUF_PACKED: of encoded batches */
    uint64_t ts;   /* timestamp the first event's delta counts from */
    uint32_t used; /* payload bytes, once nobody writes events there any more */
    uint32_t cuts;
    uint8_t *pos;    /* before that: where the last whole event ends, at any moment; else NULL */
    uint64_t serial; /* buffers of one M, in order */
    struct gt_cut {
        uint64_t ts; /* of the event before */
        uint32_t at; /* in data */
    } cut[GT_CUTS_MAX];
    uint8_t data[];
};

#define GT_BUF_PACKED UINT32_MAX

#define GT_BUF_BYTES (64u << 10)                           /* of memory, all told */
#define GT_BUF_ROOM (GT_BUF_BYTES - sizeof(struct gt_buf)) /* of payload */

/*
 * A free buffer. Without `force`, NULL once `limit` bytes of buffers are out and what waits to be
 * written takes a quarter of that (then: gt_buffers_wait). With it only when the system has no
 * memory.
 */
struct gt_buf *gt_buffers_get(bool force);

/* The buffer has events of that generation, or will have. */
void gt_buffers_claim(struct gt_buf *buf, uint32_t gen, uint32_t m, uint64_t ts);

/* Puts some aside for `force` and urgent threads. Drain side; before recording starts, too. */
void gt_buffers_reserve(void);

/*
 * Waits until a buffer was given back, 10 ms at most. Counted: see gt_buffers_stats. *since: 0 when
 * the caller begins to wait. false: none was for so long that it should go on without; the next
 * one to ask is told so at once.
 */
bool gt_buffers_wait(uint64_t *since);

void gt_buffers_put(struct gt_buf *buf);

/* A list of them, linked by `next`. */
void gt_buffers_put_all(struct gt_buf *buf);

/* Bytes of memory that filled buffers take which wait to be written: whole pages. One load. */
extern _Atomic size_t gt_buffers_queued;

/* Whether a good part of the limit is taken by buffers that wait to be written. */
bool gt_buffers_crowded(void);

/*
 * Hands a filled buffer (gen, m, ts, used set) to the drain side, and wakes it when there is enough
 * to do; it looks by itself at the end of each generation.
 */
void gt_buffers_push(struct gt_buf *buf);

/* Takes everything queued for gen, oldest first; NULL when there is nothing. */
struct gt_buf *gt_buffers_take(uint32_t gen);

/* The drain side's sleep: until gt_buffers_push or gt_buffers_kick, or the timeout. */
void gt_buffers_sleep(int64_t timeout_ns);
void gt_buffers_kick(void);

/*
 * The word, zero, that is waited on from here on, as a futex shared with other processes: storing 1
 * and waking one is a kick. NULL: our own again. A kick meanwhile may be lost; drain side only.
 */
void gt_buffers_sleep_on(_Atomic uint32_t *word);

void gt_buffers_set_limit(size_t bytes);
size_t gt_buffers_limit(void);

struct gt_buffers_stats {
    size_t mapped;    /* bytes of buffers in existence, but for the reserve */
    uint64_t waits;   /* times a thread had to wait for a buffer */
    uint64_t wait_ns; /* and how long in all */
};
struct gt_buffers_stats gt_buffers_stats(void);

/* The same, of those that there are, before: they have lost what was in them. */
void gt_buffers_forget(void);

/* In a forked child: forget everything queued. */
void gt_buffers_after_fork(void);

#endif
