/*
 * Event loops and workers: threads that come back again and again to the same wait for input or
 * work. That wait is rest, and no cause of anything. What lies between two rests is a piece of
 * work, or an iteration of the loop. While one piece takes long, the loop is blocked: all other
 * input waits.
 */
#pragma once

#include "findings.h"
#include "critical_path.h"

/* Why some pieces took long. */
struct gt_blockage {
    enum gt_kind kind; /* what the thread did for most of these pieces */
    uint32_t section, thread;
    const struct gt_callers *stack; /* from CPU samples: one that has the function on most of */
    uint32_t frame;                 /* them, and where it is there; or NULL */
    uint64_t count, ns, shortest, longest, longest_at;
    uint64_t parts;    /* how often these pieces were in that section */
    uint64_t usual_ns; /* how long a piece about the median is in that section */
};

/* A loop, or a pool of workers: the threads with one routine that rest at one place. */
struct gt_loop {
    uint32_t thread, threads;   /* thread: the first one */
    uint32_t rest, spot;        /* section of the rest, and one place of its waits; unknown: none */
    uint64_t rests, alone;      /* number of rests; rests for other threads that none ended */
    uint64_t rest_ns, rest_p50; /* at that place; of all rests */
    uint64_t pieces, busy_ns, life_ns;
    uint64_t p50, p95, p99, longest, longest_at;
    struct gt_blockage *blockage; /* what cost most time first */
    size_t blockages;
    struct gt_lengths lengths, rest_lengths; /* of pieces and of rests, while they are counted */
    uint32_t index;
};

struct gt_loops {
    struct gt_loop *at; /* the busiest first */
    size_t n;
    uint32_t *of;           /* by thread: index in `at`, or GT_NOBODY */
    uint8_t *known, *rests; /* by spot: a bit for each kind; whether waits there are rests */
    uint64_t from, to;
    uint64_t input; /* end of the first wait for input of a program with clients; or UINT64_MAX */
    bool serves;    /* some call lets clients come: gt_is_for_clients */
    bool connects;  /* some call makes connections, and none lets clients come */
};

/* Finds the loops of the interval, with all but their blockages. */
void gt_loops_find(struct gt_loops *loops, struct gt_sections *sections, uint64_t from,
                   uint64_t to);

/* Finds why pieces took long. */
void gt_loops_find_blockages(struct gt_loops *loops, struct gt_sections *sections);

/*
 * Puts that before all other findings but of locks that outweigh it by far; or, if no piece is much
 * longer than the others, what a loop that is busy does most of the time. path: of the pieces of
 * work; NULL: tells nothing of them.
 */
void gt_loops_tell(const struct gt_loops *loops, struct gt_findings *findings,
                   const struct gt_sections *sections, const struct gt_critical_path *path);

/* The function on the CPU, by samples; or NULL. */
const char *gt_blockage_function(const struct gt_blockage *it);

/* "in fsync <- append (a.c:53)"; valid until the next call. */
const char *gt_blockage_name(const struct gt_sections *sections, const struct gt_blockage *it);

/* "main", "8 x worker", or, of several processes, "8 x postgres/main". */
struct gt_name gt_loop_name(const struct gt_graph *graph, const struct gt_loop *loop);

/* Calls fn with each piece of work of a thread in the interval, until that returns false. */
typedef bool gt_piece_fn(void *arg, uint32_t thread, uint64_t from, uint64_t to);
void gt_loops_each_piece(struct gt_loops *loops, const struct gt_graph *graph, uint32_t thread,
                         gt_piece_fn *fn, void *arg);
