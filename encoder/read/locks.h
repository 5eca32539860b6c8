/*
 * Locks and their holders, from the logs in a trace (encoder/thread/held.h). For a wait: the lock
 * it was for, and the lock's holder when the wait began. For a hold: how long the holder had the
 * lock when it released it.
 */
#pragma once

#include "contents.h"

#include "encoder/base/memo.h"

struct gt_thread_state;

/* A lock, known by its name, or by its address if it has no name. */
struct gt_lock_state {
    const char *name;
    uint64_t holds, held_ns, longest_ns; /* of the holds in the trace */
    uint64_t briefs, brief_ns;           /* waits too brief for an event, in the whole trace */
    /* The last holds, as a ring: waits that are not over need no older ones. */
    struct gt_hold_state {
        const struct gt_thread_state *thread;
        uint64_t from, to;
        const char *place; /* the function that locked it; "": not known */
        bool longer;       /* the hold began earlier; when is not known */
    } * hold;
};

/* Whether the lock is an interpreter's: every thread that executes Python holds it. */
bool gt_lock_is_gil(const struct gt_lock_state *lock);

/* Whether the lock is one on a file: GT_FLOCK, GT_FCNTL. */
bool gt_lock_is_of_file(const struct gt_lock_state *lock);

/* What a wait is for. */
struct gt_wanted {
    struct gt_lock_state *lock; /* NULL: not known */
    uint64_t holder;            /* goroutine that held it when the wait began; 0: none of ours */
    const char *who;            /* other holders: "readers", "thread 123"; "": not known */
    bool kept; /* the thread was at this condition variable before, and has kept the mutex since */
};

/*
 * Whether a thread holds what the wait is for, or has held it before. So it is with a semaphore
 * only if it serves as a lock.
 */
static inline bool gt_wanted_is_held(const struct gt_wanted *wanted)
{
    return wanted && (wanted->holder || wanted->lock->holds);
}

struct gt_locks {
    struct gt_contents *contents;
    struct gt_memo by_name; /* interned: the pointer */
};

/* A thread that waits when the trace ends, and the holder of what it waits for then: GT_BLOCKED. */
struct gt_blocked_row {
    uint64_t g, holder, thread; /* holder, thread: 0 for none */
    bool timed, gone;           /* the wait has a time limit; the holder's thread has ended */
    bool again, endless;        /* for the mutex after a condition variable; can never end */
    uint64_t since;             /* ns; in the text in units of the trace's clock */
    const char *name;           /* the rest of the text */
};

/* false: the text is not such a row. */
bool gt_blocked_read(const char *text, struct gt_blocked_row *row);

/* How a condition variable was signalled: GT_SIGNALS. vain: signals when no thread was waiting. */
struct gt_signals_row {
    uint64_t signals, vain;
    const char *how; /* "pthread_cond_signal put (queue.c:12)", not terminated */
    int how_len;
    const char *name; /* of the condition variable */
};

/* false: the text is not such a row. */
bool gt_signals_read(const char *text, struct gt_signals_row *row);

/* Waits for a lock that were too brief for an event: GT_BRIEF. */
struct gt_brief_row {
    uint64_t n, ns;
    const char *name;           /* of the lock: the rest of the text */
    struct gt_lock_state *lock; /* once the trace is read */
};

/* false: the text is not such a row. */
bool gt_brief_read(const char *text, struct gt_brief_row *row);

/* Adds the row to its lock. */
void gt_locks_note_brief(struct gt_locks *locks, struct gt_brief_row *row);

/* Reads which thread has called exec. false: the text does not say that. */
bool gt_exec_read(const char *text, uint64_t *thread);

/* What the wait in a row is for, as a log of the wait would say. */
struct gt_wanted gt_locks_wanted_at_end(struct gt_locks *locks, const struct gt_blocked_row *row);

/* Reads a log. false: it does not say what its thread waits for. */
bool gt_locks_read_wanted(struct gt_locks *locks, const char *category, const char *message,
                          struct gt_wanted *wanted);

/*
 * Notes the hold if a log says that its thread has held a lock up to now. Returns the lock; or
 * NULL.
 */
const struct gt_lock_state *gt_locks_note_hold(struct gt_locks *locks, const char *category,
                                               const char *message,
                                               const struct gt_thread_state *thread, uint64_t now);

/* The last hold of a lock that was held. */
const struct gt_hold_state *gt_locks_last_hold(const struct gt_lock_state *lock);

/* How far the recorded length of a hold may be off: a hundredth of its unit. */
uint64_t gt_locks_slack(uint64_t ns);

/* The thread that had the lock then, by a hold that a log has told meanwhile; or NULL. */
const struct gt_thread_state *gt_locks_holder_at(const struct gt_lock_state *lock, uint64_t at);

/* Whether the category of a log without a task says that it is about a lock. */
bool gt_locks_is_ours(const char *category);

/* Whether such a log says what a wait is for. */
bool gt_locks_is_of_wait(const char *category);

/*
 * Whether such a log is a waker's, which ends waits for a lock, also in other processes. The
 * message is the lock.
 */
bool gt_locks_is_waker(const char *category);

/* Calls fn for each part of the time in which the lock's holder is known. */
typedef void gt_held_fn(void *arg, const struct gt_hold_state *part);
void gt_locks_holders(const struct gt_lock_state *lock, uint64_t from, uint64_t to, gt_held_fn *fn,
                      void *arg);
