/* What all threads did in an interval, in one look at each step: for findings and pictures. */
#ifndef GT_WHY_SURVEY_H
#define GT_WHY_SURVEY_H

#include "sections.h"

enum { GT_COLUMNS = 64 };

/* How many threads did that, over time. */
enum gt_band {
    GT_BAND_RUNNING,
    GT_BAND_NO_CPU,
    GT_BAND_CALLS,
    GT_BAND_LOCKS,
    GT_BAND_OTHER,
    GT_BANDS
};

/* The waits of one place. */
struct gt_place_waits {
    uint64_t ns, count, threads;
    uint64_t woken, vain; /* by others; vain: it was back there at once */
    uint64_t groups;      /* of wake-ups at one time by one thread */
    uint64_t rounds;      /* waits that end by themselves, with hardly anything between */
    uint64_t longest, longest_at;
    uint32_t thread, section;
    bool of_lock;
};

struct gt_lock_waits {
    uint64_t ns, count, longest, longest_at, threads;
    uint32_t thread; /* the last that was counted */
};

/* Threads that began in the same function. */
struct gt_pool {
    const char *routine;
    uint32_t threads, first;   /* first: one of them */
    uint64_t free_ns, held_ns; /* what they do without a lock, and with one */
    uint64_t rests, rest_ns;   /* that they wait for others, not for locks */
    uint64_t idle_ns;          /* of that: for work, as reports have it */
    uint64_t lock_ns;          /* for locks */
    uint64_t peer_ns;          /* of all that: ended by one of the same pool */
    uint64_t blind_ns;         /* of these: for what nobody is known to have held, as a futex */
    uint64_t life_ns;
    uint64_t fed;         /* rests that threads of others ended */
    uint64_t shared;      /* rests for what another thread of the pool has waited for, too */
    uint64_t awaited;     /* waits of others for room in a queue, as names say, that it ended */
    uint64_t by_peers;    /* of these by another one than the first who ended one */
    uint32_t feeder;      /* who of them ended most; or GT_NOBODY */
    uint64_t fed_by_that; /* how many */
};

struct gt_survey {
    uint64_t from, to;
    double band[GT_BANDS][GT_COLUMNS]; /* threads, on average */
    double total[GT_BANDS];            /* the same of the whole interval */
    struct gt_place_waits *place;      /* by spot */
    struct gt_lock_waits *lock;        /* by lock */
    struct gt_pool *pool;
    size_t pools;
    uint32_t *pool_of; /* by thread */
    uint64_t *posts;   /* by thread: waits of others that it ended */
};

void gt_survey_make(struct gt_survey *survey, struct gt_sections *sections, uint64_t from,
                    uint64_t to);

/*
 * How many threads of a pool did something at a time, while any did, between these times; *part:
 * for how much of that any did.
 */
double gt_survey_parallelism(const struct gt_survey *survey, const struct gt_graph *graph,
                             size_t pool, uint64_t from, uint64_t to, double *part);

#endif
