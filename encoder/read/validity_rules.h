/*
 * What the events of a v2 trace may do, and when: the state of each goroutine, P and thread, and
 * the rules of Go's `ordering` (internal/trace/order.go). For validity_v2.c.
 */
#ifndef GT_VALIDITY_RULES_H
#define GT_VALIDITY_RULES_H

#include "validity.h"

/* What a table of a generation has: id → where in the file, plus 1. */
struct gt_ids {
    uint64_t *dense; /* of the small ones */
    size_t room;
    struct gt_memo others;
};

/* A sequence number counts within the generation. */
struct gt_count {
    uint64_t gen, seq;
};

struct gt_rule_region {
    uint64_t task;
    struct gt_bytes name;
};

struct gt_rule_g {
    uint64_t id;
    bool exists, assists;
    uint64_t status; /* as the file has it: enum gt_g_state */
    struct gt_count at;
    struct gt_rule_region *regions;
    size_t n_regions, room_regions;
    uint64_t *stops; /* the kinds of the stops of the world that it has begun */
    size_t n_stops, room_stops;
};

struct gt_rule_p {
    uint64_t id;
    bool exists, sweeps;
    uint64_t status; /* enum gt_p_state, or GT_P_ABANDONED */
    struct gt_count at;
};

enum { GT_P_ABANDONED = GT_P_SYSCALL + 1 };

/* A thread, and its events in the generation. */
struct gt_rule_m {
    uint64_t id;
    bool known; /* it has done something, or was said to be in a call */
    struct gt_rule_g *g;
    struct gt_rule_p *p;
    uint64_t listed; /* in which generation it has events, by their order; the rest is of that: */
    size_t first, last; /* pieces, by number */
    struct gt_bytes bytes;
    int64_t time; /* of the event that comes next, in ns */
    const uint8_t *start;
    uint8_t type;
    uint64_t arg[GT_EVENT_ARGS_MAX];
};

struct gt_rules {
    struct gt_fault *fault;
    struct gt_memo g, p, m; /* id → their rows */
    struct gt_memo tasks;   /* id → 1: open; 2: ended */
    struct gt_ids strings, stacks;
    const uint8_t *base, *end; /* of the file */
    uint64_t gen, first_gen;
    uint64_t gc_seq;
    enum { GT_GC_UNKNOWN, GT_GC_OFF, GT_GC_ON } gc;
};

/* Whether the id is in the table, or 0. */
static inline uint64_t gt_ids_find(const struct gt_ids *ids, uint64_t id)
{
    return id < ids->room ? ids->dense[id] : gt_memo_find(&ids->others, id);
}

/* The thread of that number. */
struct gt_rule_m *gt_rule_m(struct gt_rules *r, uint64_t id);

/*
 * The next event of m: it happens; or others come first; or it cannot happen, which is noted in
 * r->fault.
 */
enum gt_verdict { GT_DONE, GT_NOT_YET, GT_WRONG };
enum gt_verdict gt_rule_advance(struct gt_rules *r, struct gt_rule_m *m);

void gt_rules_free(struct gt_rules *r);

#endif
