/*
 * The critical path, walked back from a moment of one thread: a wait that another thread ended
 * leads to that thread. Its stretches follow each other without gaps and are together as long as
 * the interval.
 */
#pragma once

#include "cpu_use.h"
#include "sections.h"

#include "scripts/tool/report/lengths.h"

struct gt_path_row {
    uint32_t section;
    uint64_t ns, count, longest, longest_at; /* longest_at: when the longest one began */
    uint32_t thread;                         /* the first thread seen */
    uint32_t threads, most;                  /* most: the thread with the longest sum */
    uint64_t most_ns;
    bool alike; /* all these threads have one name */
    struct gt_lengths lengths;
    uint64_t guessed; /* ns: the thread that ended the wait after it is inferred */
    uint64_t open;    /* ns in a wait that had not ended when the trace did */
    uint64_t once;    /* ns in which the thread initialised a function-local static */
};

/*
 * The time of the path during which a thread held a lock, and waited there for another thread.
 * Waits for locks do not count.
 */
struct gt_across {
    uint64_t ns, longest;
    uint64_t guessed;     /* of ns: the thread that ended the wait is inferred */
    uint32_t section, by; /* of the longest wait: where, and the thread that ended it */
    uint64_t low, walk;   /* counted back to this time, in that walk */
};

/* Which thread the path is on, from its end back to its beginning. */
struct gt_path_trail {
    struct gt_trail_part {
        uint32_t thread;
        uint64_t from, to;
    } * at;
    size_t n;
};

struct gt_critical_path {
    struct gt_path_row *row; /* after gt_path_finish: the longest first */
    size_t n;
    struct gt_memo by_section, by_place; /* by_place: ns + 1 by section and thread */
    uint64_t from, to, ns; /* ns: sum of all rows; with several intervals more than to - from */
    uint64_t by_kind[GT_KINDS];
    uint64_t *by_thread;      /* ns */
    struct gt_across *across; /* by lock */
    uint64_t walks;
    uint64_t *seen; /* by spot: ns there, waits included that led to their waker */
    struct gt_delays woken,
        preempted; /* run-queue delays: after a wake-up, and after a preemption */
    uint64_t stretches, hops;
    uint64_t watch;              /* a time, or 0 */
    uint32_t watch_thread;       /* the path's thread just before it, or GT_NOBODY */
    struct gt_path_trail *trail; /* where to note the path's threads; or NULL */
};

/* Adds the path walked back from `to` on the thread to `from`. */
void gt_path_add(struct gt_critical_path *path, struct gt_sections *sections, uint32_t thread,
                 uint64_t from, uint64_t to);

/* Frees all memory. The path is empty then and can be used again. */
void gt_path_free(struct gt_critical_path *path);

/* Sorts the rows. */
void gt_path_finish(struct gt_critical_path *path);

/*
 * Whether threads write there and wait each time, as for a reader that is slower, and of which
 * nothing is known. What they do between is no cause: the sooner it is done, the longer they wait.
 */
bool gt_path_row_waits_to_write(const struct gt_sections *sections, const struct gt_path_row *row);

/* The row of the section, or NULL; how long the path is in it, in ns. After gt_path_finish. */
const struct gt_path_row *gt_path_row_of(const struct gt_critical_path *path, uint32_t section);
uint64_t gt_path_ns_of(const struct gt_critical_path *path, uint32_t section);
