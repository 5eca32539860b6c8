/*
 * The graph that `gotrace why` walks, in memory: what each thread of a trace did, and which thread
 * ended each of its waits. A thread's steps are stored one after the other, packed (some 5 bytes
 * each), with the locks it held and its samples. A step is a stretch of running, a call, a wait or
 * a run-queue delay.
 */
#pragma once

#include "omp_regions.h"

#include "encoder/read/threads.h"

#define GT_NOBODY UINT32_MAX

/* Where a step happens. A call or wait has one stack; running lies between two calls. */
struct gt_spot {
    const struct gt_callers *stack;        /* running: of the call before; or NULL */
    const struct gt_callers *after;        /* running: of the call after; or NULL */
    const struct gt_callers *region;       /* running: of the OpenMP region around it; or NULL */
    bool runs;                             /* running, or runnable without a CPU */
    bool locks;                            /* the call waits for what another thread may hold */
    bool yields;                           /* sched_yield: the thread gives way, and could run */
    bool spins;                            /* running: the thread only yielded again and again */
    bool busy;                             /* a report's rule says: never a wait for work */
    bool gives;                            /* a write or send: it may end waits of others */
    bool joins;                            /* the call waits for a thread's end */
    bool reaps;                            /* the call waits for a child process */
    bool of_file;                          /* the call may wait for a lock on a file */
    bool takes;                            /* it reads a token: see tokens.h */
    bool token;                            /* of a semaphore, which may serve as a lock */
    bool futex;                            /* of a lock that is a futex: see futex_holds.h */
    bool once;                             /* of the guard of a function-local static */
    uint64_t alone, alone_ns, alone_least; /* calls and waits there that no thread ended */
};

struct gt_lane_step {
    uint64_t from, to; /* ns since the trace began */
    enum gt_kind kind;
    bool ended;     /* false: the end of the trace cuts it */
    bool anew;      /* a wait at a condition variable begins: it is no part of the one before */
    bool kept;      /* it waits again at a condition variable, and has kept the mutex since */
    bool relocks;   /* after a wake-up it waits for `lock`: see relock.h */
    bool told;      /* with relocks: events tell that wait, as one for a condition variable */
    bool slot;      /* `lock` stands for tokens, and `by` gave one back: no holder is meant */
    bool guessed;   /* `by` is inferred from times only: see handed.h */
    bool ending;    /* the child that it waits for has no event any more: see reaped.h */
    uint32_t spot;  /* index in gt_graph.spot */
    uint32_t by;    /* of a wait: the thread that ended it, or GT_NOBODY */
    uint32_t waker; /* number of the waker's stack, or 0 */
    uint32_t lock;  /* of a wait: index in gt_graph.lock, or GT_NOBODY */
    uint32_t owner; /* the lock's holder when the wait began, or GT_NOBODY */
    uint32_t p;     /* the CPU it ran on; of a delay: ran on afterwards; or GT_NOBODY */
};

/* Whether the end of the trace cuts a wait or a call. */
static inline bool gt_step_is_open(const struct gt_lane_step *s)
{
    return !s->ended && s->kind != GT_RUNNING && s->kind != GT_SCHED;
}

/*
 * The time a thread held a lock. Recorded if another thread waited for the lock, or if the hold was
 * long. Sorted by `to`.
 */
struct gt_lock_hold {
    uint64_t from, to;
    uint32_t lock, place; /* place: index in gt_graph.text: the function that locked */
    bool longer;          /* the hold began before `from` */
    bool gil;             /* see gt_lock_is_gil */
    bool once;            /* the thread initialised a function-local static: its guard is no lock */
};

/*
 * How far the beginning of a hold may be off: the trace gives its length to a hundredth of its
 * unit.
 */
uint64_t gt_hold_slack(const struct gt_lock_hold *h);

/* Whether it is a millisecond or longer: then `from` may be off by more than a call takes. */
bool gt_hold_is_rough(const struct gt_lock_hold *h);

struct gt_why_sample {
    uint64_t at;
    uint32_t stack, spot; /* spot: of what it stands for, see cpu_samples.h */
};

/*
 * The end of a wait that no event explains: when it was over, and the thread that ended it. See
 * handed.h for waits for descriptors, and relock.h for those that events tell as delays.
 */
struct gt_handed {
    uint64_t at;
    uint32_t by, lock; /* lock: the wait was for it; or GT_NOBODY: for a descriptor */
    bool guessed;      /* `by` is inferred from times only */
    bool unseen;       /* the wait goes on until `by`'s process is gone; no event shows when */
    bool slot;         /* see gt_lane_step.slot */
    bool ending;       /* `by` is a child process that is about to end: the wait goes on */
};

/*
 * A question that was there when its reader came to it: the reader did not wait, but needed it. at:
 * the asking thread had sent it. See questions.h.
 */
struct gt_question {
    uint64_t at;
    uint32_t by, reader;
};

/* A call that read or wrote a single byte of a pipe: see tokens.h. */
struct gt_byte {
    const char *pipe; /* its name in the trace: equal names have equal pointers */
    uint64_t from, to;
    const struct gt_callers *stack;
    uint32_t thread;
    bool writes;
};

/* The waits at a place that a thread ended, as it was inferred: see handed.h. */
struct gt_guessed {
    uint32_t spot, by;
    uint64_t waits;
};

struct gt_lane_chunk;

/* What one thread did. */
struct gt_lane {
    const struct gt_thread_state *thread;
    struct gt_lane_chunk **chunk;
    size_t chunks;
    uint64_t begin, until; /* of its steps */
    uint64_t steps;
    struct gt_lock_hold *hold;
    size_t holds;
    struct gt_why_sample *sample;  /* sorted by time once the trace is read */
    struct gt_why_sample *by_spot; /* the same ones, sorted by spot, then by time */
    size_t samples;
    struct gt_handed *handed; /* sorted by time */
    size_t handeds;
    struct gt_lane_step *pending; /* running steps whose next call is not known yet */
    size_t pendings;
    const struct gt_callers *before; /* stack of its last call or wait */
    uint64_t call_from, call_to;     /* when that was */
    uint64_t last_wait; /* when its last call or wait was over, except those for locks */
    uint64_t ran;       /* how long it ran since then */
    bool woken;         /* another thread has ended one of its waits */
    bool stopped;       /* it went on until it was told to stop: joins.h */
    uint32_t creator;   /* the thread that created it or started its process; or GT_NOBODY */
    uint64_t created;   /* when that thread went on: at `begin`, or before; see spawned.h */
    uint64_t alike;     /* with `stopped`: known only by so many sleeps of one length; or 0 */
    uint64_t joined;    /* when its creator went on after joining it without waiting; or 0 */
    double ran_least;   /* of its running, at least this part was on a CPU: see cpu_use.h */
};

/* An annotated task of the program (gotrace.h). */
struct gt_user_task {
    const char *name;
    uint64_t id, from, to;
    uint32_t thread, ender; /* the threads that began and ended it */
    bool ended;
};

struct gt_graph {
    struct gt_threads threads;
    struct gt_trace trace;
    struct gt_lane *lane; /* by gt_thread_state.number */
    size_t lanes;
    struct gt_spot *spot;
    size_t spots;
    const struct gt_lock_state **lock;
    size_t locks;
    const char **text;
    size_t texts;
    const struct gt_callers **stack; /* by number */
    size_t stacks_room;
    struct gt_user_task *task;
    size_t tasks;
    struct gt_question *question; /* sorted by reader, then by time */
    size_t questions;
    struct gt_byte *byte;
    size_t bytes;
    struct gt_guessed *guess;
    size_t guesses;
    struct gt_omp_regions regions;
    uint64_t steps, holds, samples;
    uint64_t inferred; /* waits whose waker no event names, and was inferred: handed.h */
    bool channels;     /* calls say which pipe, socket or eventfd they were for: channel.h */
    uint64_t unasked;  /* such waits that were too many to look at */
    struct gt_memo spot_of, lock_of, text_of, task_of, slots_of;
};

/* Reads the trace at `path`. On failure ends the program with a message. */
void gt_graph_read(struct gt_graph *graph, const char *path);

/* A place in a thread's steps; the steps around it are unpacked. */
struct gt_cursor {
    const struct gt_graph *graph;
    uint32_t thread;
    struct gt_lane_step *step;
    size_t n, i, chunk, room;
    bool open;
};

/* The step that begins before `at` and ends at `at` or later. NULL: the thread had none. */
const struct gt_lane_step *gt_cursor_seek(struct gt_cursor *c, uint64_t at);

/* The first step that ends after `from`. NULL: there is none. */
const struct gt_lane_step *gt_cursor_from(struct gt_cursor *c, uint64_t from);

/* The step after the one that was returned last. NULL: there is none. */
const struct gt_lane_step *gt_cursor_next(struct gt_cursor *c);
void gt_cursor_close(struct gt_cursor *c);

/* Declares a cursor before the thread's first step. It closes itself at the end of its block. */
#define GT_CURSOR(c, graph_, thread_)                                                  \
    __attribute__((cleanup(gt_cursor_close))) struct gt_cursor c = {.graph = (graph_), \
                                                                    .thread = (thread_)}

/* Goes through the thread's steps `s`. The outer loop makes one round, for its cursor. */
#define GT_EACH_STEP(s, graph_, thread_)                                     \
    for (GT_CURSOR(s##_c, graph_, thread_); s##_c.graph; s##_c.graph = NULL) \
        for (const struct gt_lane_step *s; (s = gt_cursor_next(&s##_c));)

/* Goes through those that end after `from_` and begin before `to_`. */
#define GT_EACH_STEP_IN(s, graph_, thread_, from_, to_)                                          \
    for (GT_CURSOR(s##_c, graph_, thread_); s##_c.graph; s##_c.graph = NULL)                     \
        for (const struct gt_lane_step *s = gt_cursor_from(&s##_c, from_); s && s->from < (to_); \
             s = gt_cursor_next(&s##_c))

/* A cursor for each thread, in the order of gt_graph.lane. */
struct gt_cursor *gt_cursors_open(const struct gt_graph *graph);
void gt_cursors_close(struct gt_cursor *cursor);

/* The name of the call in which the step is; "": it runs, or waits for a CPU. */
const char *gt_graph_call_of(const struct gt_graph *graph, const struct gt_lane_step *step);

/*
 * Whether the step waits for a lock that has a holder, not for a signal, a post or a thread's end.
 */
bool gt_graph_is_lock_wait(const struct gt_graph *graph, const struct gt_lane_step *step);

/* Whether the step is a wait for work or input, by the rules of reports, and for no token. */
bool gt_graph_is_idle(const struct gt_graph *graph, const struct gt_lane_step *step);

/* Whether the step waits for an interpreter's lock, as a thread may between any two of its calls.
 */
bool gt_graph_is_gil_wait(const struct gt_graph *graph, const struct gt_lane_step *step);

/* The function with the longest hold of the lock; "": not known, or any may hold it (a GIL). */
const char *gt_taker_of(const struct gt_graph *graph, uint32_t lock);

/* Whether it is the trace of gotrace -f, or of several processes. */
bool gt_graph_is_of_family(const struct gt_graph *graph);

/*
 * Whether the trace was recorded with -f -s all: what it does not know of waits for descriptors,
 * such a recording does not tell.
 */
bool gt_graph_knows_channels(const struct gt_graph *graph);

/* Whether the program makes such a call, as far as the trace shows: see roles.h. */
bool gt_graph_calls(const struct gt_graph *graph, bool (*is)(const char *call));

/* Index of the thread's first hold that ends after `at`; lane->holds if there is none. */
size_t gt_lane_hold_after(const struct gt_lane *lane, uint64_t at);

/* For how long the thread held the lock during that time, by the holds that are recorded. */
uint64_t gt_lane_held(const struct gt_lane *lane, uint32_t lock, uint64_t from, uint64_t to);

/*
 * The thread's next hold that ends after `at`, in the order of their ends; NULL after the last. The
 * holds that began by `at` are among them: a thread has few locks at a time. *walk: zeros to begin
 * with.
 */
struct gt_hold_walk {
    size_t next, end;
};
const struct gt_lock_hold *gt_lane_next_hold(const struct gt_lane *lane, uint64_t at,
                                             struct gt_hold_walk *walk);

/*
 * Adds a hold that the trace does not have, and that may have begun before its `from`. place: the
 * function that locked, or "". After the last one, sort them.
 */
void gt_graph_add_hold(struct gt_graph *graph, uint32_t thread, struct gt_lock_hold hold,
                       const char *place);
void gt_graph_sort_holds(struct gt_graph *graph);

/*
 * A lock that the trace does not have, with a name that lives on. slots: how many threads have it
 * at a time. Returns its number.
 */
uint32_t gt_graph_add_lock(struct gt_graph *graph, const char *name, uint64_t slots);

/* How many slots such a lock has; 0: it is a lock of the trace. */
uint64_t gt_graph_slots(const struct gt_graph *graph, uint32_t lock);

/* The name of the tokens in a pipe that has several. */
#define GT_TOKENS "tokens"

/* Whether the lock is the guard of a function-local static that a thread initialised. */
bool gt_graph_is_guard(const struct gt_graph *graph, uint32_t lock);

/* Whether the thread was initialising a function-local static at that time. */
bool gt_lane_initialises(const struct gt_lane *lane, uint64_t at);

/* Adds inferred ends of the thread's waits, in any order. Frees `handed`; no cursor may be open. */
void gt_lane_hand(struct gt_lane *lane, struct gt_handed *handed, size_t n);

/* Counts a wait there that the thread is guessed to have ended, for gt_graph.guess. */
void gt_graph_note_guess(struct gt_graph *graph, uint32_t spot, uint32_t by);
