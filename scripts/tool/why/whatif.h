/* What would help, and how much: changes, each tried by a replay. */
#ifndef GT_WHY_WHATIF_H
#define GT_WHY_WHATIF_H

#include "path.h"
#include "replay.h"
#include "survey.h"

enum gt_whatif_kind {
    GT_HALF,      /* a section takes half as long */
    GT_FREE_LOCK, /* nobody ever waits for a lock */
    GT_MORE,      /* a pool has a thread more */
    GT_SLOT,      /* a semaphore has a slot more */
    GT_CPUS,      /* whoever can run does */
};

struct gt_whatif {
    enum gt_whatif_kind kind;
    uint32_t section, lock;
    uint32_t slots;    /* that it has now */
    const char *taken; /* by the function that held the lock longest; "": not known */
    struct gt_pool pool;
    uint64_t ns; /* the run would take */
    double gain; /* a part of what it takes */
    double score;
};

struct gt_whatifs {
    struct gt_whatif *at; /* the one to try first, first */
    size_t n, room;
    uint64_t from, to; /* that was replayed */
    uint64_t base_ns;  /* without a change */
    double cpus;
    uint64_t forced, waits;
};

/* Which part of the interval is to be replayed: all of it, or so much of its middle as is quick. */
void gt_whatifs_choose(struct gt_whatifs *all, const struct gt_graph *graph, uint64_t from,
                       uint64_t to);

/* path: of the interval, finished, with the end of that part watched. survey: of the interval. */
void gt_whatifs_find(struct gt_whatifs *all, struct gt_sections *sections,
                     const struct gt_path *path, const struct gt_survey *survey);

/*
 * Whether the replay without a change takes as long as the run, to a tenth; or at least so that
 * what comes first may be told, as more or less.
 */
bool gt_whatifs_are_sound(const struct gt_whatifs *all);
bool gt_whatifs_are_rough(const struct gt_whatifs *all);

#endif
