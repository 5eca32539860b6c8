/* All that `gotrace why` found, and the functions that show it. */
#pragma once

#include "loops.h"
#include "standstill.h"
#include "tasks.h"

/*
 * The work of a server, whose end nobody waits for. A piece lies between two waits of a thread for
 * input, at the place where the thread waits for input longest.
 */
struct gt_pieces {
    uint64_t n, longest, longest_at;
    uint32_t threads;
};

/* What --as says. */
enum gt_as { GT_AS_FOUND, GT_AS_SERVER, GT_AS_BATCH };

/* How the run is read: as a batch program, or, and why, as a server. */
enum gt_reading {
    GT_BATCH,
    GT_SERVER_ASKED,   /* --as or --thread says so */
    GT_SERVER_ACCEPTS, /* it accepts connections, and waits for input until it ends */
    GT_SERVER_BINDS,   /* others can send to it first, and it waits for input until it ends */
    GT_SERVER_WAITS,   /* it waits for input most of its time, and asks nobody for it */
    GT_SERVER_ATTENDS, /* its last thread only waits for a signal to end */
};

/* Waits for input, or to write, on the path of which nobody knows the waker: see wakers.h. */
struct gt_unknown_wakers {
    uint64_t waits, ns;            /* 0: next to none */
    uint64_t written;              /* of ns: waits until a reader has made room */
    const struct gt_path_row *row; /* the row with most of them; or NULL */
};

struct gt_why {
    enum gt_as as;
    enum gt_reading reading;
    const char *task; /* the task to explain; NULL: the whole run */
    bool timeline;    /* the trail is wanted */
    struct gt_graph graph;
    struct gt_sections sections;
    uint64_t from, to;          /* what the page explains */
    struct gt_standstill still; /* from `to` on, if there is anything before */
    uint32_t thread;            /* the path was walked back from its end */
    struct gt_critical_path path;
    struct gt_path_trail trail; /* of the path of the run; with `timeline` */
    struct gt_loops loops;
    bool finishes;                  /* it ends when its work is done: finishes.h */
    bool outlived;                  /* other processes went on, but only waited for its end */
    const struct gt_loop *restless; /* one that never sleeps; or NULL */
    struct gt_pieces pieces; /* n > 0: the path is that of the pieces, else that of the run */
    struct gt_survey survey;
    struct gt_unknown_wakers unknown;
    struct gt_whatifs whatifs;
    struct gt_findings findings;
    struct gt_tasks tasks; /* only with `task` */
};

/*
 * Computes everything from the graph, which is read. Ends the program with a message if nothing was
 * recorded in the interval.
 */
void gt_why_find(struct gt_why *why, uint64_t from, uint64_t to);

/*
 * What the account knows of the thread that computes longest on the path: its time in the kernel
 * that no recorded call explains. NULL: nothing, or samples tell more. To be freed.
 */
char *gt_why_system_time(struct gt_why *why);

void gt_why_print(struct gt_why *why);
void gt_why_print_json(struct gt_why *why);

extern const char *const gt_whatif_bases[]; /* by gt_basis: a word */

/* "fsync <- append (a.c:53) took half"; valid until the next call. */
const char *gt_whatif_name(const struct gt_why *why, const struct gt_whatif *it);

/* Waits off the critical path, the longest first. */
struct gt_off_path {
    uint32_t section, thread; /* thread: one of them */
    uint64_t ns, threads;
};
size_t gt_why_off_path(const struct gt_why *why, struct gt_off_path *out, size_t most);
