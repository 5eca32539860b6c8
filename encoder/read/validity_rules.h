/*
 * Which events a v2 trace may have, and when: the state of each goroutine, P and thread, and the
 * rules of Go's `ordering` (internal/trace/order.go). For validity_v2.c.
 */
#pragma once

#include "validity.h"

/* The entries of a generation's table: id → offset in the file + 1. */
struct gt_ids {
    uint64_t *dense; /* of the small ids */
    size_t room;
    struct gt_memo others;
};

/* A sequence number, which counts within a generation. */
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
    uint64_t status; /* as in the file: enum gt_g_state */
    struct gt_count at;
    struct gt_rule_region *regions;
    size_t n_regions;
    uint64_t *stops; /* the kinds of the open stops of the world that it has begun */
    size_t n_stops;
};

struct gt_rule_p {
    uint64_t id;
    bool exists, sweeps;
    uint64_t status; /* enum gt_p_state, or GT_P_ABANDONED */
    struct gt_count at;
};

enum { GT_P_ABANDONED = GT_P_SYSCALL + 1 };

/* A thread, and its events in the current generation. */
struct gt_rule_m {
    uint64_t id;
    bool known; /* it has had an event, or a status said that it was in a call */
    struct gt_rule_g *g;
    struct gt_rule_p *p;
    uint64_t listed;    /* the last generation, by order, in which it has events; below, for it: */
    size_t first, last; /* numbers of its pieces */
    struct gt_bytes bytes;
    int64_t time; /* of the next event, in ns */
    const uint8_t *start;
    uint8_t type;
    uint64_t arg[GT_EVENT_ARGS_MAX];
};

struct gt_rules {
    struct gt_fault *fault;
    struct gt_memo g, p, m; /* id → row */
    struct gt_memo tasks;   /* id → 1: open; 2: ended */
    struct gt_ids strings, stacks;
    const uint8_t *base, *end; /* of the file */
    uint64_t gen, first_gen;
    uint64_t gc_seq;
    enum { GT_GC_UNKNOWN, GT_GC_OFF, GT_GC_ON } gc;
};

/* The offset + 1 of the entry with that id; 0: the table does not have it. */
static inline uint64_t gt_ids_find(const struct gt_ids *ids, uint64_t id)
{
    return id < ids->room ? ids->dense[id] : gt_memo_find(&ids->others, id);
}

/* The thread with that number; it is created when first asked for. */
struct gt_rule_m *gt_rule_m(struct gt_rules *r, uint64_t id);

/*
 * Tries the next event of m. GT_DONE: it happens. GT_NOT_YET: other events come first. GT_WRONG:
 * it cannot happen, which is noted in r->fault.
 */
enum gt_verdict { GT_DONE, GT_NOT_YET, GT_WRONG };
enum gt_verdict gt_rule_advance(struct gt_rules *r, struct gt_rule_m *m);

void gt_rules_free(struct gt_rules *r);
