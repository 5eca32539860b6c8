/*
 * Who held which lock, from the logs in a trace that say so (encoder/held.h): what a wait was for,
 * who held that when it began, and since when who gave it up had had it.
 */
#ifndef GT_READ_LOCKS_H
#define GT_READ_LOCKS_H

#include "contents.h"

#include "encoder/base/memo.h"

struct gt_thread_state;

/* Known by its name, or by its address where it has none. */
struct gt_lock_state {
    const char *name;
    uint64_t holds, held_ns, longest_ns; /* that were told */
    /* The last ones, as a ring: of waits that are not over no older ones are asked for. */
    struct gt_hold_state {
        const struct gt_thread_state *thread;
        uint64_t from, to;
        const char *place; /* the function that took it; "": not known */
        bool longer;       /* it had the lock before, for nobody knows how long */
    } * hold;
};

/* What a wait is for. */
struct gt_wanted {
    struct gt_lock_state *lock; /* NULL: it is not told */
    uint64_t holder; /* the goroutine that held it when the wait began; 0: none of ours */
    const char *who; /* instead: "readers", "thread 123", "" for nobody known */
};

struct gt_locks {
    struct gt_contents *contents;
    struct gt_memo by_name; /* interned: the pointer */
};

/* Who waits when the trace ends, and who holds then what it waits for: GT_BLOCKED. */
struct gt_blocked_row {
    uint64_t g, holder, thread; /* holder, thread: 0 where there is none */
    bool timed, gone;           /* the wait ends by itself; that thread has ended */
    bool again, endless;        /* for the mutex after a condition variable; it can never end */
    uint64_t since;             /* ns, of the trace's clock as it stands in the text */
    const char *name;           /* behind it in the text */
};

/* false: the text is none. */
bool gt_blocked_read(const char *text, struct gt_blocked_row *row);

/* How a condition variable was signalled: GT_SIGNALS. */
struct gt_signals_row {
    uint64_t signals, vain;
    const char *how; /* "pthread_cond_signal put (queue.c:12)", not terminated */
    int how_len;
    const char *name; /* the variable's */
};

/* false: the text is none. */
bool gt_signals_read(const char *text, struct gt_signals_row *row);

/* Likewise, which thread has called exec. */
bool gt_exec_read(const char *text, uint64_t *thread);

/* The same as a wait's. */
struct gt_wanted gt_locks_wanted_at_end(struct gt_locks *locks, const struct gt_blocked_row *row);

/* Reads a log: false, it is not about what its thread waits for. */
bool gt_locks_read_wanted(struct gt_locks *locks, const char *category, const char *message,
                          struct gt_wanted *wanted);

/* Or about a lock that the thread has had up to now: which; or NULL. */
const struct gt_lock_state *gt_locks_note_hold(struct gt_locks *locks, const char *category,
                                               const char *message,
                                               const struct gt_thread_state *thread, uint64_t now);

/* Of a lock that was held. */
const struct gt_hold_state *gt_locks_last_hold(const struct gt_lock_state *lock);

/* Whether a log of no task is about a lock. */
bool gt_locks_is_ours(const char *category);

/* Whether it is of what a wait is for. */
bool gt_locks_is_of_wait(const char *category);

/* Whether it is of who ends waits there, of other processes, too; the message is the lock. */
bool gt_locks_is_waker(const char *category);

/* Calls fn for each part of that time of which is told who had the lock. */
typedef void gt_held_fn(void *arg, const struct gt_hold_state *part);
void gt_locks_holders(const struct gt_lock_state *lock, uint64_t from, uint64_t to, gt_held_fn *fn,
                      void *arg);

#endif
