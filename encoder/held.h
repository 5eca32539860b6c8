/*
 * What a wait says of its lock: which one it is, and who holds it. It stands in the trace as a log
 * without a task, which viewers show on the row of the thread, just before the wait:
 * "[held by] G7 committer, cache_lock", or, where nobody is known to hold it,
 * "[waits for] cache_lock".
 *
 * And who gives up a lock that is waited for, or that it has held for long, says since when:
 * "[held cache_lock, taken in commit] 31.25ms" (hot.h).
 *
 * And who ends a wait at what processes share: "[wakes at] shared 0:19:4711+0x40". The waiter may
 * be another process's, in whose trace the wait ends by itself; `gotrace merge` finds who that was.
 *
 * Threads write only a number for that. What it says is put together when it is written to the
 * file: only then names are looked up (struct gt_string, `lock`).
 */
#ifndef GT_HELD_H
#define GT_HELD_H

#include "format.h"

#define GT_HELD_LONGER " or longer" /* behind the time: nobody looked before */

#include <stdbool.h>
#include <stdint.h>

struct gt_string;
struct gt_writer;

/* What a waker says; all: it ends every wait there, not one. */
#define GT_WAKES_TEXT "wakes at"
#define GT_WAKES_ALL_TEXT "wakes all at"

/* Beside ids of threads. */
enum gt_holder {
    GT_HOLDER_UNKNOWN = 0,
    GT_HOLDER_READERS = 1 << 30, /* of a read-write lock; the kernel's ids end below that */
    GT_HOLDER_SELF,              /* see gt_held_hold */
    GT_HOLDER_WAKER,             /* of a log that is none of a wait's: that of a waker */
    GT_HOLDER_WAKER_OF_ALL,
};

struct gt_lock_in_use {
    const void *at;  /* NULL: nothing is said */
    uint32_t holder; /* its thread, as the kernel numbers them, or of enum gt_holder */
    uint32_t epoch;  /* of the module map */
    bool shared;     /* it may be other processes', too */
};

/* The last ones of a thread, each found again without a look into the table of strings. */
enum { GT_HELD_RECENT = 8 };
struct gt_held_recent {
    struct gt_held_key {
        uint64_t lock, g; /* g 0: not a thread of ours */
        uint64_t routine; /* where that began, or for SELF took the lock: an address, or 0 */
        uint64_t name[2]; /* that it gave itself, filled up with zeros */
        uint32_t holder, epoch;
        uint64_t shared; /* 1: see gt_lock_in_use */
    } key;
    struct gt_string *string;
    uint32_t era; /* of it; 0: none */
};

/* Of a wait of w's thread, or of a waker, inside; NULL: it cannot be had. */
struct gt_string *gt_held_string(struct gt_writer *w, const struct gt_lock_in_use *lock);

/* That w's thread, GT_HOLDER_SELF, has taken it in the function at that address. Likewise. */
struct gt_string *gt_held_hold(struct gt_writer *w, const struct gt_lock_in_use *lock,
                               uint64_t address);

/* Which kind of log it is. */
enum gt_reason gt_held_category(const struct gt_string *s);

/* w's thread begins, or has another name; it ends: for who waits for what it holds. Its owner. */
void gt_held_begin(struct gt_writer *w);
void gt_held_end(const struct gt_writer *w);

/*
 * How a trace says who waits when it ends, for what has an owner: strings that no event uses, with
 * the goroutine that waits; the one that holds it then, or 0, and its thread, or 0; a sum:
 * 1 if the wait ends by itself, 2 if that thread has ended, 4 if it is for the mutex after a
 * condition variable, 8 if it can never end; when it began; and what it waits for, nothing if that
 * is the thread's end.
 */
#define GT_BLOCKED "gotrace-waits "
typedef void gt_tell_fn(const char *text, uint32_t len);

/*
 * And how condition variables were signalled: how often, how often in vain, by which function,
 * where, and which one. "gotrace-signals 12 3 pthread_cond_signal put (queue.c:12), not_empty"
 */
#define GT_SIGNALS "gotrace-signals "

/* And that this thread, as the kernel numbers it, has called exec: if that succeeds it is the end.
 */
#define GT_EXEC "gotrace-exec "

/*
 * Drain side: what the lock at an address is called, by its variable, with "+8" if it is inside of
 * that, or the address; of one that processes share, what it is called in all of them: GT_SHARED.
 * And the function there, with no comma, or NULL. What they return is valid until the next call of
 * either.
 */
typedef const char *gt_lock_name_fn(uint64_t address, uint32_t epoch, bool shared);
typedef const char *gt_place_fn(uint64_t address, uint32_t epoch);
void gt_held_init(gt_lock_name_fn *lock, gt_place_fn *function, void (*at_end)(gt_tell_fn *));

/*
 * The beginning of the name of a lock in memory that processes share: "shared 0:19:4711+0x40" is at
 * that offset in the file with the inode 4711 on the device 0:19, as /proc/self/maps has them.
 */
#define GT_SHARED "shared "

/* What stands at the end of a trace, by `at_end`: each with a number for a string. */
void gt_held_tell_end(void (*put)(uint64_t id, const char *text, uint32_t len));

/* What a string says, any one, valid until the next call; its length. */
uint32_t gt_held_text(const struct gt_string *s, const char **text);

/* The goroutine of a thread; 0: it is none of ours. */
uint64_t gt_held_g(uint32_t tid);

/* In a forked child: only the caller's thread is here. */
void gt_held_after_fork(void);

#endif
