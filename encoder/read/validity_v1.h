/*
 * What the files validity_v1*.c share. validity_v1_records.c reads the records of a file and the
 * events of each P. validity_v1_states.c applies events to states. validity_v1.c takes events in
 * order. All run in the one thread of a command.
 */
#pragma once

#include "trace.h"
#include "validity.h"

#include "encoder/base/memo.h"
#include "encoder/base/queue.h"

#include <inttypes.h>

enum gt_check_state { GT_CHECK_DEAD, GT_CHECK_RUNNABLE, GT_CHECK_RUNNING, GT_CHECK_WAITING };

struct gt_check_event {
    uint8_t type;
    uint64_t key; /* the key of the order: time, or Go 1.5's number */
    uint64_t ts, g, arg[GT_V1_ARGS_MAX];
    const uint8_t *start;
};

struct gt_check_region {
    uint64_t task, name;
};

struct gt_check_g {
    uint64_t id;
    /* For the order of events. */
    uint64_t seq;
    enum gt_check_state status;
    uint64_t call; /* when its last call began to last; 0: never */
    struct gt_check_source
        *waiting; /* sources whose next events wait for an event of this goroutine */
    /* For what events do. */
    bool exists, assists, timer;
    enum gt_check_state state;
    struct gt_check_region *regions;
    size_t n_regions;
};

struct gt_check_piece {
    const uint8_t *start, *end;
    uint64_t ts, seq;
    struct gt_check_piece *next;
};

/* A P. */
struct gt_check_source {
    uint64_t id;
    struct gt_check_piece *first, **last;
    struct gt_bytes bytes;
    const struct gt_check_piece *piece;
    uint64_t ts, seq, last_g;
    struct gt_check_event next;
    struct gt_check_source *next_waiting;
    bool runs, sweeps;
    uint64_t g;
};

/* The end of a call whose event comes later than the end itself. */
struct gt_check_moved {
    struct gt_check_event event;
    struct gt_check_source *on;
};

struct gt_check_v1 {
    const struct gt_trace *trace;
    struct gt_fault *fault;
    bool by_number; /* Go 1.5 */
    struct gt_memo g, p, tasks, strings;
    struct gt_bytes *stack; /* stacks whose strings are to be checked */
    size_t n_stacks;
    struct gt_check_g collector; /* orders collections, as if they were a goroutine's */
    struct gt_check_source *samples;
    struct gt_pair *sample; /* times; values: offsets in the file */
    size_t n_samples, told_samples;
    struct gt_check_source **source;
    size_t n;
    struct gt_queue queue; /* sources whose next events can happen */
    size_t waiting;        /* how many others have a next event */
    struct gt_check_moved *moved;
    struct gt_pair *moved_order;
    size_t n_moved, told_moved;
    bool moves; /* some ends of calls have late events */
    bool collects, stops, frequency;
    uint64_t last_ts, next_key; /* next_key: Go 1.5: the least next one */
};

/* Whether the running goroutine waits from this event on. */
static inline bool gt_check_blocks(uint8_t type)
{
    switch (type) {
    case GT_V1_GO_BLOCK:
    case GT_V1_GO_BLOCK_SEND:
    case GT_V1_GO_BLOCK_RECV:
    case GT_V1_GO_BLOCK_SELECT:
    case GT_V1_GO_BLOCK_SYNC:
    case GT_V1_GO_BLOCK_COND:
    case GT_V1_GO_BLOCK_NET:
    case GT_V1_GO_BLOCK_GC:
    case GT_V1_GO_SLEEP:
    case GT_V1_GO_SYS_BLOCK: return true;
    default: return false;
    }
}

#define WRONG(...) gt_fault_note(c->fault, __VA_ARGS__)

/* The goroutine with that number; it is created when first asked for. */
struct gt_check_g *gt_check_g_of(struct gt_check_v1 *c, uint64_t id);

/* Adds a source of events. */
struct gt_check_source *gt_check_add_source(struct gt_check_v1 *c, uint64_t id);

/* Reads all records: checks each, and assigns the file's bytes to Ps. */
bool gt_check_read_records(struct gt_check_v1 *c);

/* Fills s->next; false: there are no more events. */
bool gt_check_next_event(struct gt_check_v1 *c, struct gt_check_source *s);

/* Whether a string is in the file. true for formats whose readers do not need it. */
bool gt_check_has_string(struct gt_check_v1 *c, uint64_t id);

/* Applies an event to goroutines, Ps, tasks and regions; false: they are in no state for it. */
bool gt_check_happens(struct gt_check_v1 *c, struct gt_check_source *s,
                      const struct gt_check_event *e);
