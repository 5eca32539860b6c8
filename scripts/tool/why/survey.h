/* What all threads did in an interval, from one pass over all steps: for findings and pictures. */
#pragma once

#include "sections.h"

enum { GT_COLUMNS = 64 };

/* The rows of the parallelism picture: how many threads were in this state, over time. */
enum gt_band {
    GT_BAND_RUNNING,
    GT_BAND_NO_CPU,
    GT_BAND_CALLS,
    GT_BAND_LOCKS,
    GT_BAND_OTHER,
    GT_BANDS
};

/*
 * What threads that poll seem to ask for. During failed looks, another thread had a lock, or was at
 * that place. Or it was done there before the looks that found something. GT_ASKED_TRIED: events
 * tell that they had failed to take a lock. GT_ASKED_AGAIN: not known what, but the waits grow,
 * as those of a thread that tries again. GT_ASKED_CHILD: equal waits, and before each round of them
 * the thread made a child process, or waited for one.
 */
enum gt_asked_how {
    GT_ASKED_UNKNOWN,
    GT_ASKED_HELD,
    GT_ASKED_THERE,
    GT_ASKED_ENDED,
    GT_ASKED_TRIED,
    GT_ASKED_AGAIN,
    GT_ASKED_CHILD
};
struct gt_asked {
    enum gt_asked_how how;
    uint32_t what;     /* a section, or a lock */
    uint32_t by;       /* GT_ASKED_TRIED: the thread that had the lock most; or GT_NOBODY */
    uint64_t hits, of; /* so many of these looks; GT_ASKED_CHILD: of the rounds */
};

/* The waits at one place. */
struct gt_place_waits {
    uint64_t ns, count, threads;
    uint64_t woken;  /* by other threads */
    uint64_t kept;   /* then waited there again, and had kept the mutex: gt_lane_step.kept */
    uint64_t groups; /* groups of wake-ups by one thread at one time; each signal is its own */
    uint64_t rounds; /* waits that no thread ended, with next to no work between */
    uint64_t longest, longest_at;
    uint64_t last_from, last_to; /* of the wait counted last */
    uint32_t thread, section;
    uint32_t lock; /* of its last wait; or GT_NOBODY */
    bool of_lock;
    struct gt_asked asked;
    bool serves; /* others tell the threads when to begin, and learn when they are done */
};

/* A thread's last wait, and ns of work since then. Python's interpreter lock is no wait here. */
struct gt_rounds {
    uint32_t spot;
    bool woken; /* another thread ended it */
    uint64_t between;
};

/*
 * How a wait follows the thread's last one. GT_AGAIN: at that place, with next to no work between.
 * GT_GOES_ON: it is a part of that wait, as for the mutex after the condition variable.
 */
enum gt_round { GT_ELSEWHERE, GT_AGAIN, GT_AGAIN_WOKEN, GT_GOES_ON };

/* Counts the thread's next step. Of a step that is no wait, GT_ELSEWHERE. */
enum gt_round gt_rounds_next(struct gt_rounds *rounds, const struct gt_graph *graph,
                             const struct gt_lane_step *step);

/* A thread that waited at a place. */
struct gt_place_waiter {
    uint32_t spot, thread;
};

struct gt_lock_waits {
    uint64_t ns, count, longest, longest_at, threads;
    uint64_t held_ns, no_cpu_ns; /* how long it was held; and by a holder without a CPU */
    uint32_t thread;             /* the thread counted last */
};

/* A pool: the threads that began in the same function. */
struct gt_pool {
    const char *routine, *name; /* name: of its first thread; "": it has none of its own */
    uint32_t threads, first;    /* first: one of its threads */
    uint64_t free_ns, held_ns;  /* time of work without a lock, and with one */
    uint64_t rests, rest_ns;    /* waits for other threads, not for locks */
    uint64_t idle_ns;           /* of rest_ns: waits for work, by the rules of reports */
    uint64_t lock_ns;           /* waits for locks */
    uint64_t peer_ns;           /* of both: waits ended by a thread of the same pool */
    uint64_t blind_ns; /* of peer_ns: waits for what has no known holder, such as a futex */
    uint64_t life_ns;
    uint64_t fed;         /* rests that threads of other pools ended */
    uint64_t shared;      /* rests for what another thread of the pool also waited for */
    uint64_t awaited;     /* waits of other pools for room in a queue, ended by this pool */
    uint64_t by_peers;    /* of `awaited`: ended by another thread than the first that ended one */
    uint32_t feeder;      /* the thread that ended most rests, or GT_NOBODY */
    uint64_t fed_by_that; /* how many rests the feeder ended */
};

struct gt_survey {
    uint64_t from, to;
    double band[GT_BANDS][GT_COLUMNS]; /* threads, on average */
    double total[GT_BANDS];            /* average over the whole interval */
    struct gt_place_waits *place;      /* by spot */
    struct gt_place_waiter *waiter;    /* each thread of each place once */
    size_t waiters;
    struct gt_lock_waits *lock; /* by lock */
    struct gt_pool *pool;
    size_t pools;
    uint32_t *pool_of; /* by thread */
    uint64_t
        *posts; /* by thread: waits of others that it ended; none for its begin, its end, a GIL */
    uint64_t *work; /* by thread: ns of its work, without waits for others or for a CPU */
    uint64_t *free; /* by thread: ns of that without a lock: other threads could do it meanwhile */
};

/* What the pool's threads are called: their routine, or "worker/main" of processes of one name. */
struct gt_name gt_name_of_pool(const struct gt_pool *pool);

void gt_survey_make(struct gt_survey *survey, struct gt_sections *sections, uint64_t from,
                    uint64_t to);

/*
 * The thread of the pool that works longest without a lock, if the pool's threads divide work among
 * them that was given to each beforehand, and unevenly. Else GT_NOBODY. *average: such work of
 * each, in ns.
 */
uint32_t gt_survey_straggler(const struct gt_survey *survey, size_t pool, uint32_t threads,
                             double *average);

/*
 * Whether threads wait there again and again, with next to no work between, and no thread ends
 * their waits. A thread other than the last one may work by sleeping: it polls only if others wait
 * for it, or if it is known what it asks for. A thread that gives others something in every second
 * round paces them, and polls nothing.
 */
bool gt_survey_is_poll(const struct gt_survey *survey, const struct gt_sections *sections,
                       uint32_t last_thread, uint32_t spot);

/* Whether the thread works in that step: it runs, calls, or waits for what no thread ends. */
bool gt_survey_works(const struct gt_lane_step *step);

/*
 * Average number of the pool's threads that worked at a time between `from` and `to`, while at
 * least one did. *part: the part of that time in which at least one did.
 */
double gt_survey_parallelism(const struct gt_survey *survey, const struct gt_graph *graph,
                             size_t pool, uint64_t from, uint64_t to, double *part);

/* How long all threads of the pool had work at the same time, in ns: only then one more had some.
 */
uint64_t gt_survey_full(const struct gt_survey *survey, const struct gt_graph *graph, size_t pool,
                        uint64_t from, uint64_t to);
