/*
 * Locks that are held for so short a time that no hold is logged, and that threads find taken again
 * and again. No recorded hold explains the waits for such a lock, and its holder has changed by the
 * time that a waiter looks. But the thread that ends a wait was the last holder. All of these are a
 * sample of the lock's holders.
 */
#pragma once

#include "graph.h"

enum { GT_RELEASERS_MOST = 2 };

/* The waits for one mutex. */
struct gt_short_sections {
    uint64_t ns, count, threads; /* recorded waits, and how many threads waited */
    uint64_t brief_ns, briefs;   /* waits too brief for an event; 0: not known of the interval */
    uint64_t woken_ns;           /* after the recorded waits the threads had no CPU for so long */
    uint64_t life_ns;            /* the threads' lives within the interval */
    uint64_t most_ns;            /* ns and woken_ns of the thread with most of them */
    bool others;                 /* there are waits for it as for no mutex */
    /* Which functions gave it up to a waiter, those with the longest waits first. */
    struct {
        const char *func; /* NULL: there are no more */
        uint64_t ns;
    } releaser[GT_RELEASERS_MOST];
    uint64_t released_ns; /* of all waits that such a function ended */
};

struct gt_short_sections gt_short_sections_of(const struct gt_graph *graph, uint32_t lock,
                                              uint64_t from, uint64_t to);

/* The part of the threads' time that they waited for the lock, or for a CPU right afterwards. */
double gt_short_sections_part(const struct gt_short_sections *s);

/* The most, in ns, that the run could be shorter without these waits. */
uint64_t gt_short_sections_bound(const struct gt_short_sections *s);
