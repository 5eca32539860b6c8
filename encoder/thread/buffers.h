/*
 * Event buffers of 64 KiB, and small ones: a pool, and two queues of filled buffers, one for each
 * of the two generations that can be open at a time. Every buffer holds events of one M: one batch,
 * or several batches, which `cut` divides.
 *
 * No locks: any thread, any context.
 */
#pragma once

#include "encoder/base/freelist.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_CUTS_MAX 40u

struct gt_buf {
    struct gt_free free;
    struct gt_buf *next;
    uint32_t gen;  /* 0: nothing in it belongs to the trace, or not yet */
    uint32_t m;    /* GT_BUF_PACKED: encoded batches */
    uint64_t ts;   /* timestamp the first event's delta counts from */
    uint32_t used; /* payload bytes, once no thread writes events there any more */
    uint32_t cuts;
    uint8_t *pos;    /* until then: the end of the last whole event; else NULL */
    uint64_t serial; /* orders the buffers of one M */
    bool whole;      /* all of it has memory: see gt_buffers_get_begun */
    bool small;      /* see gt_buffers_get_first */
    struct gt_cut {
        uint64_t ts; /* of the event before */
        uint32_t at; /* offset in data */
    } cut[GT_CUTS_MAX];
    uint8_t data[];
};

#define GT_BUF_PACKED UINT32_MAX

#define GT_BUF_BYTES (64u << 10)                           /* of memory, with the header */
#define GT_BUF_ROOM (GT_BUF_BYTES - sizeof(struct gt_buf)) /* of payload */
#define GT_BUF_SMALL 1344u             /* 21 cache lines: mostly three in a page */
#define GT_BUF_WORTH (GT_BUF_ROOM / 2) /* so many bytes are worth being written at once */

/*
 * Takes a free buffer. Without `force`, returns NULL once `limit` bytes of buffers are out and the
 * queued buffers take a quarter of that (then: gt_buffers_wait). With `force`, NULL only when the
 * system has no memory.
 */
struct gt_buf *gt_buffers_get(bool force);

/*
 * As gt_buffers_get, but in a black box only the first page has disk space, which is enough for one
 * batch: most threads that end soon need no more.
 */
struct gt_buf *gt_buffers_get_begun(bool force);

/*
 * As gt_buffers_get_begun, for the first events of a thread in a generation: a small buffer, except
 * in a black box. Most threads that live briefly, or wait long, write no more. A page of memory
 * that nobody has touched yet costs 2 us and more in a virtual machine.
 */
struct gt_buf *gt_buffers_get_first(bool force);

/* The bytes of memory of the buffer, with the header. */
static inline size_t gt_buffers_bytes(const struct gt_buf *buf)
{
    return buf->small ? GT_BUF_SMALL : GT_BUF_BYTES;
}

/* The bytes of payload that the buffer can hold. */
static inline size_t gt_buffers_room(const struct gt_buf *buf)
{
    return gt_buffers_bytes(buf) - sizeof *buf;
}

/* Whether `bytes` from `at` are in the buffer. Takes disk space for them, if there is any. */
bool gt_buffers_have_room(struct gt_buf *buf, const uint8_t *at, ptrdiff_t bytes);

/* Marks the buffer: it has events of that generation, or will have. */
void gt_buffers_claim(struct gt_buf *buf, uint32_t gen, uint32_t m, uint64_t ts);

/* Sets buffers aside for `force` and urgent threads. Drain side; before recording starts, too. */
void gt_buffers_reserve(void);

/*
 * Waits until a buffer was given back, 10 ms at most. Waits are counted: see gt_buffers_stats.
 * *since: 0 when the caller begins to wait. false: no buffer came back for so long that the caller
 * should go on without; the next caller gets false at once.
 */
bool gt_buffers_wait(uint64_t *since);

void gt_buffers_put(struct gt_buf *buf);

/* Gives back a list of buffers, linked by `next`. */
void gt_buffers_put_all(struct gt_buf *buf);

/* Bytes of memory of filled buffers that wait to be written, in pages but for small buffers. */
extern _Atomic size_t gt_buffers_queued;

/* Whether buffers that wait to be written take a good part of the limit. */
bool gt_buffers_crowded(void);

/*
 * Hands a filled buffer (gen, m, ts, used set) to the drain side, and wakes it when there is enough
 * to do. The drain side also looks at the end of each generation. Gives back an empty buffer.
 */
void gt_buffers_push(struct gt_buf *buf);

/* Takes all buffers queued for gen, oldest first. NULL: there are none. */
struct gt_buf *gt_buffers_take(uint32_t gen);

/* The drain side's sleep: until gt_buffers_push or gt_buffers_kick, or the timeout. */
void gt_buffers_sleep(int64_t timeout_ns);
void gt_buffers_kick(void);

/*
 * Makes the drain side wait on `word`, a futex that is 0 and shared with other processes. They kick
 * by storing 1 and waking one waiter. NULL: its own word again. A kick during the change may be
 * lost. Drain side only.
 */
void gt_buffers_sleep_on(_Atomic uint32_t *word);

void gt_buffers_set_limit(size_t bytes);
size_t gt_buffers_limit(void);

struct gt_buffers_stats {
    size_t mapped;    /* bytes of all buffers, except the reserve */
    uint64_t waits;   /* times a thread had to wait for a buffer */
    uint64_t wait_ns; /* and how long in all */
};
struct gt_buffers_stats gt_buffers_stats(void);

/* In a forked child, before gt_buffers_after_fork: forgets all buffers, which are empty now. */
void gt_buffers_forget(void);

/* In a forked child: forgets all queued buffers. */
void gt_buffers_after_fork(void);
