/* What would help, and how much: changes to the run, each tried in a replay. */
#pragma once

#include "critical_path.h"
#include "drained.h"
#include "starved.h"
#include "survey.h"

enum gt_whatif_kind {
    GT_HALF,      /* a section takes half as long */
    GT_FREE_LOCK, /* a lock is never contended */
    GT_ACROSS,    /* a lock is not held while its holder waits for another thread */
    GT_MORE,      /* a pool has one thread more */
    GT_SLOT,      /* a semaphore has one slot more */
    GT_CPUS,      /* no thread ever waits for a CPU */
    GT_EVEN,      /* the threads of a pool have an equal part of its work each */
    GT_NO_POLL,   /* a thread that polls goes on at once: a section takes no time */
};

/* How sure the gain of a change is. */
enum gt_basis {
    GT_REPLAYED, /* the run was replayed with the change */
    GT_BOUNDED,  /* a replay gives more, or see no_input; it is the most that the change can save */
    GT_INFERRED, /* replayed; but what no event tells is inferred: wakers, or a pool's queue */
    GT_SHARED,   /* replayed, and the pieces of work of threads that share them divided anew */
};

struct gt_whatif {
    enum gt_whatif_kind kind;
    enum gt_basis basis;
    uint32_t section, lock; /* section: also where a holder of the lock waits, GT_ACROSS */
    uint32_t slots;         /* slots it has now */
    const char *taken;      /* the function with the longest hold of the lock; of slots, one that
                               waits for them; "": not known, or the slots have a name */
    struct gt_pool pool;
    struct gt_drained drained; /* GT_MORE: how it is known that the pool has one queue, if so */
    bool no_input;             /* as if unknown ends of waits for input came with what it changes */
    uint64_t ns;               /* length of the run with the change */
    double gain;               /* the part of the run that the change saves */
    double score;
    bool elsewhere; /* nothing that the program does: other processes have the CPUs */
};

enum { GT_OFF_MOST = 20 };

struct gt_whatifs {
    struct gt_whatif *at; /* sorted: what to try first comes first */
    size_t n;
    uint64_t from, to; /* the interval that was replayed */
    uint64_t passes;   /* waits in it for locks after which the trace has no hold of the waiter's */
    uint64_t base_ns;  /* length of the replay without a change */
    double cpus;
    uint64_t forced, waits;
    uint32_t poll;             /* the section of a poll that is replayed as one; or GT_NOBODY */
    uint32_t off[GT_OFF_MOST]; /* the sections of waits off the path: to be set before */
    size_t offs;
    bool off_is_idle; /* with all of these half as long, the replay takes as long: off_path.h */
    struct gt_starved starved;
    bool starves; /* such waits are most of the path: then no change is tried */
};

/*
 * Chooses the part of the interval to replay: all of it, or its middle, cut to what replays fast.
 */
void gt_whatifs_choose(struct gt_whatifs *all, const struct gt_graph *graph, uint64_t from,
                       uint64_t to);

/* path: the finished path of the interval; it watched the end of the replayed part. */
void gt_whatifs_find(struct gt_whatifs *all, struct gt_sections *sections,
                     const struct gt_critical_path *path, const struct gt_survey *survey);

/* The length of the replay without a change, as a part of the run. */
double gt_whatifs_unchanged(const struct gt_whatifs *all);

/*
 * Whether the replay without a change takes as long as the run to 5 %: then its figures need no
 * "about".
 */
bool gt_whatifs_are_exact(const struct gt_whatifs *all);

/*
 * Whether the replay without a change takes about as long as the run: to a tenth (sound), or to 30
 * % (rough). A rough replay is good enough to order the changes, but not for exact figures.
 */
bool gt_whatifs_are_sound(const struct gt_whatifs *all);
bool gt_whatifs_are_rough(const struct gt_whatifs *all);
