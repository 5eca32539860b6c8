/*
 * An interval of a trace as a program for each thread: what the thread did, which threads it waited
 * for and woke, and which locks it asked for. A replay executes these programs with other timings.
 */
#pragma once

#include "sections.h"

enum gt_op_type {
    GT_OP_WORK,    /* a stretch of a section; ns: its length */
    GT_OP_COMPUTE, /* a stretch on a CPU */
    GT_OP_DELAY,   /* a run-queue delay, skipped if the thread did not have to wait */
    GT_OP_AWAIT,   /* wait until an edge is posted */
    GT_OP_POST,    /* an edge is posted */
    GT_OP_ACQUIRE, /* take a lock */
    GT_OP_PASS,    /* take a lock and release it at once */
    GT_OP_RELEASE,
};

struct gt_op {
    uint32_t type : 4, held : 1, arg : 27; /* arg: section, edge or lock; held: a lock is held */
    uint64_t ns; /* AWAIT, ACQUIRE and PASS: when it was over in the trace */
};

static inline struct gt_op gt_op_make(enum gt_op_type type, uint32_t arg, uint64_t ns)
{
    return (struct gt_op){.type = type, .arg = arg & ((1u << 27) - 1), .ns = ns};
}

/*
 * A wake-up: the end of a wait, on the thread that ended it. Also the creation of a thread, on its
 * creator; the end of a thread that was joined without a wait; a question that was there.
 */
struct gt_edge {
    uint64_t at, since; /* since: when the wait began */
    uint32_t by, waiter;
    uint32_t lock, spot; /* of the wait: its lock, or GT_NOBODY; its place */
};

/*
 * A thread that goes on at `at` and needs the edge for it, though the trace shows no wait: a join
 * without a wait, or a question that was there.
 */
struct gt_silent {
    uint32_t waiter, edge;
    uint64_t at;
};

/* What one thread does. */
struct gt_thread_role {
    struct gt_op *op;
    size_t n;
    size_t first_edge, edges; /* the edges that it posts, in gt_program.edge */
};

struct gt_program {
    struct gt_sections *sections;
    uint32_t target; /* the program is over when this thread ends */
    uint64_t from, to;
    struct gt_thread_role *role; /* by thread */
    size_t roles;
    struct gt_edge *edge;
    size_t edges;
    struct gt_silent *silent; /* sorted by waiter, then by time */
    size_t silents;
    uint32_t *slots;           /* by lock: how many slots it has; 0: it is no semaphore */
    struct gt_lock_hold *hold; /* of all threads, sorted by lock and time */
    size_t holds;
    bool *held;            /* by lock: `hold` has some */
    double cpus;           /* CPUs that its threads share; 0: CPUs do not limit it */
    uint32_t poller, poll; /* a thread that polls, in this section: see polls.h; or GT_NOBODY */
};

/* Builds the program of the interval, up to the end of what `thread` does in it. */
struct gt_program *gt_program_build(struct gt_sections *sections, uint32_t thread, uint64_t from,
                                    uint64_t to);

void gt_program_free(struct gt_program *program);
