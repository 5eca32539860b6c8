/*
 * What the threads of a trace did and who let them go on, kept in memory for `gotrace why`: each
 * thread's steps one after the other, packed (some 5 bytes each), the locks it held, and its
 * samples. A step is a stretch of running, a call, a wait or a delay in a run queue.
 */
#ifndef GT_WHY_GRAPH_H
#define GT_WHY_GRAPH_H

#include "encoder/read/threads.h"

#define GT_NOBODY UINT32_MAX

/* Where something happens: a call or wait has a stack, running is between two. */
struct gt_spot {
    const struct gt_callers *stack;        /* running: of what was before; or NULL */
    const struct gt_callers *after;        /* running: of what came next; or NULL */
    bool runs;                             /* or would, if it had a CPU */
    bool locks;                            /* the call is one for what somebody else may have */
    bool yields;                           /* it gives way to others, and could run */
    bool busy;                             /* nor is it one for work, by the rules of reports */
    uint64_t alone, alone_ns, alone_least; /* calls and waits there that nobody ended */
};

struct gt_step {
    uint64_t from, to; /* ns since the trace began */
    enum gt_kind kind;
    bool ended;     /* else the end of the trace cuts it */
    uint32_t spot;  /* index in gt_graph.spot */
    uint32_t by;    /* of a wait: the thread that ended it, or GT_NOBODY */
    uint32_t waker; /* stack number where that did, or 0 */
    uint32_t lock;  /* of a wait: index in gt_graph.lock, or GT_NOBODY */
    uint32_t owner; /* who held that when the wait began, or GT_NOBODY */
    uint32_t p;     /* the CPU that it ran on, or, of a delay, had then; or GT_NOBODY */
};

/* A lock that a thread had: those that let somebody in, and long ones. In the order of `to`. */
struct gt_hold {
    uint64_t from, to;
    uint32_t lock, place; /* place: index in gt_graph.text: the function that took it */
    bool longer;          /* from: it had the lock then, and before */
};

struct gt_why_sample {
    uint64_t at;
    uint32_t stack;
};

/* Of a wait that ended by itself, as events have it: when it was over, and who did that. */
struct gt_handed {
    uint64_t at;
    uint32_t by;
};

struct gt_lane_chunk;

/* A thread. */
struct gt_lane {
    const struct gt_thread_state *thread;
    struct gt_lane_chunk **chunk;
    size_t chunks, room;
    uint64_t begin, until; /* of its steps */
    uint64_t steps;
    struct gt_hold *hold;
    size_t holds, holds_room;
    struct gt_why_sample *sample; /* in the order of time once all is read */
    size_t samples, samples_room;
    struct gt_handed *handed; /* see handed.h; in the order of time */
    size_t handeds;
    struct gt_step *pending; /* running, of which is not known yet what it leads to */
    size_t pendings, pendings_room;
    const struct gt_callers *before; /* of its last call or wait */
    bool woken;                      /* ever, by another one */
    bool stopped;                    /* it went its rounds until it was told to stop: see joins.h */
    uint64_t joined; /* when its maker went on, that did not have to wait for its end; or 0 */
};

/* A task that the program told of. */
struct gt_task {
    const char *name;
    uint64_t id, from, to;
    uint32_t thread, ender; /* who began and who ended it */
    bool ended;
};

struct gt_graph {
    struct gt_threads threads;
    struct gt_trace trace;
    struct gt_lane *lane; /* by gt_thread_state.number */
    size_t lanes, lanes_room;
    struct gt_spot *spot;
    size_t spots, spots_room;
    const struct gt_lock_state **lock;
    size_t locks, locks_room;
    const char **text;
    size_t texts, texts_room;
    const struct gt_callers **stack; /* by number */
    size_t stacks_room;
    struct gt_task *task;
    size_t tasks, tasks_room;
    uint64_t steps, holds, samples;
    uint64_t inferred; /* waits of which nobody says who ended them, and it is taken to be known */
    uint64_t unasked;  /* and of which that is not looked for: there are too many */
    struct gt_memo spot_of, lock_of, text_of, task_of;
};

/* Reads the trace at that path. Ends the program with a message where that fails. */
void gt_graph_read(struct gt_graph *graph, const char *path);

/*
 * A place in a thread's steps, around which some are unpacked. Zeros,
 * but for graph and thread, to begin with.
 */
struct gt_cursor {
    const struct gt_graph *graph;
    uint32_t thread;
    struct gt_step *step;
    size_t n, i, chunk, room;
    bool open;
};

/* The step that ends at that time or after and begins before it; NULL: the thread had none. */
const struct gt_step *gt_cursor_seek(struct gt_cursor *c, uint64_t at);

/* The first step that ends after that time; NULL: there is none. */
const struct gt_step *gt_cursor_from(struct gt_cursor *c, uint64_t from);

/* The one after the last that was returned; NULL: there is none. */
const struct gt_step *gt_cursor_next(struct gt_cursor *c);
void gt_cursor_close(struct gt_cursor *c);

/* Whether the wait is for a lock that somebody has, not for a signal, a post or an end. */
bool gt_graph_is_lock_wait(const struct gt_graph *graph, const struct gt_step *step);

/* The first hold of a thread that ends after that time: an index, or lane->holds. */
size_t gt_lane_hold_after(const struct gt_lane *lane, uint64_t at);

/* The first sample of a thread at that time or after. */
size_t gt_lane_sample_from(const struct gt_lane *lane, uint64_t at);

#endif
