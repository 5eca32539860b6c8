/*
 * An interval of a trace as a program for each of its threads: what it did, who it waited for and
 * let go on, which locks it asked for. For replays, which do it again in another time.
 */
#ifndef GT_WHY_PROGRAM_H
#define GT_WHY_PROGRAM_H

#include "sections.h"

enum gt_op_type {
    GT_OP_WORK,    /* a stretch of a section; ns: how long */
    GT_OP_COMPUTE, /* the same on a CPU */
    GT_OP_DELAY,   /* the same, of a thread that was woken: not where it had nothing to wait for */
    GT_OP_AWAIT,   /* until an edge is there */
    GT_OP_POST,    /* an edge is there now */
    GT_OP_ACQUIRE, /* a lock */
    GT_OP_PASS,    /* the same, to give it up at once */
    GT_OP_RELEASE,
};

struct gt_op {
    uint32_t type : 4, held : 1, arg : 27; /* arg: section, edge or lock; held: with a lock */
    uint64_t ns; /* of AWAIT, ACQUIRE and PASS: when it was over in the trace */
};

/*
 * The end of a wait, on the thread that ended it; or the beginning of a thread on its creator's; or
 * its end, which that did not have to wait for.
 */
struct gt_edge {
    uint64_t at, since; /* since: when the wait began */
    uint32_t by, waiter;
    uint32_t lock, spot; /* of the wait: what it was for, or GT_NOBODY; where */
};

/* That a thread goes on at that time, and could not before an edge was there. */
struct gt_silent {
    uint32_t waiter, edge;
    uint64_t at;
};

/* What a thread does. */
struct gt_role {
    struct gt_op *op;
    size_t n, room;
    size_t first_edge, edges; /* that it posts: of gt_program.edge */
};

struct gt_program {
    struct gt_sections *sections;
    uint32_t target; /* the thread at whose end it is over */
    uint64_t from, to;
    struct gt_role *role; /* by thread */
    size_t roles;
    struct gt_edge *edge;
    size_t edges, edges_room;
    struct gt_silent *silent; /* by waiter, then by time */
    size_t silents;
    uint32_t *slots;      /* by lock: how many it has, 0: it is no semaphore for such */
    struct gt_hold *hold; /* of all threads, by lock, in the order of time */
    size_t holds;
    bool *held;   /* by lock: there are some */
    double cpus;  /* that its threads share; 0: they do not limit it */
    bool counted; /* what part of running was on a CPU the account alone tells */
};

/* Of that interval, up to the end of what `thread` does in it. */
struct gt_program *gt_program_build(struct gt_sections *sections, uint32_t thread, uint64_t from,
                                    uint64_t to);

void gt_program_free(struct gt_program *program);

#endif
