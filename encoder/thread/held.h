/*
 * The log of a wait for a lock: which lock it is, and which thread holds it. It stands in the trace
 * as a log without a task, just before the wait; viewers show it on the row of the waiter. It says
 * "[held by] G7 committer, cache_lock". If the lock holder is not known, it says
 * "[waits for] cache_lock". If the wait is for a condition variable that the thread was at before,
 * and the thread has kept the mutex since, it says "[waits again for] not_empty".
 *
 * A lock holder leaves a log when it releases a lock that is waited for, or that it has held for
 * long. The log says for how long: "[held cache_lock, taken in commit] 31.25ms" (hot.h).
 *
 * A waker leaves a log at an object in memory that processes share:
 * "[wakes at] shared 0:19:4711+0x40". The waiter may be in another process, whose trace does not
 * show the waker; `gotrace merge` finds it.
 *
 * Threads write only a number for a log. Its text is made when it is written to the file: only then
 * names are looked up (struct gt_string, `of_lock`).
 */
#pragma once

#include "encoder/format/format.h"

#include <stdbool.h>
#include <stdint.h>

struct gt_string;
struct gt_writer;

struct gt_lock_in_use {
    const void *at;  /* NULL: there is nothing to say */
    uint32_t holder; /* its thread's kernel id, or one of enum gt_holder */
    uint32_t epoch;  /* of the module map */
    bool shared;     /* other processes may use it, too */
};

/* The string for a wait of w's thread, or of a waker. Inside only. NULL: see gt_strings_intern. */
struct gt_string *gt_held_string(struct gt_writer *w, const struct gt_lock_in_use *lock);

/*
 * The string for a hold: w's thread, GT_HOLDER_SELF, has taken the lock in the function at
 * `address`. Inside only. NULL: see gt_strings_intern.
 */
struct gt_string *gt_held_hold(struct gt_writer *w, const struct gt_lock_in_use *lock,
                               uint64_t address);

/* The kind of log that a string of a lock belongs to. */
enum gt_reason gt_held_category(const struct gt_string *s);

/*
 * w's thread begins, or has another name; w's thread ends. Waiters for locks that it holds look it
 * up. By w's owner.
 */
void gt_held_begin(struct gt_writer *w);
void gt_held_end(const struct gt_writer *w);

/* Takes a text that stands at the end of a trace, in the words of lock_texts.h. */
typedef void gt_tell_fn(const char *text, uint32_t len);

/*
 * Drain side. gt_lock_name_fn: the name of the lock at an address. It is the lock's variable, with
 * "+8" if the lock is inside of that, or the address. A lock that processes share has the same name
 * in all of them: GT_SHARED. gt_place_fn: the function at an address, with no comma, or NULL.
 * Results are valid until the next call of either.
 */
typedef const char *gt_lock_name_fn(uint64_t address, uint32_t epoch, bool shared);
typedef const char *gt_place_fn(uint64_t address, uint32_t epoch);
struct gt_held_texts { /* NULL: none */
    gt_lock_name_fn *lock;
    gt_place_fn *function;
    void (*at_end)(gt_tell_fn *tell); /* tells the texts of a trace's end */
};
void gt_held_init(const struct gt_held_texts *texts); /* valid for ever */

/* Calls put for each text that `at_end` wants at the end of a trace, with a number for a string. */
void gt_held_tell_end(void (*put)(uint64_t id, const char *text, uint32_t len));

/* The text of any string, valid until the next call. Returns its length. */
uint32_t gt_held_text(const struct gt_string *s, const char **text);

/* The goroutine of a thread; 0: the thread is none of ours. */
uint64_t gt_held_g(uint32_t tid);

/* In a forked child: only the caller's thread is here. */
void gt_held_after_fork(void);
