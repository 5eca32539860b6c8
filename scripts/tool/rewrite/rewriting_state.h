/*
 * What is known of everybody while a trace is rewritten: of threads (M), Ps, goroutines, tasks. And
 * the steps that change it, each of which also writes the event that says so, if events are
 * written. For rewriting.c and rewriting_begin.c.
 */
#ifndef GT_REWRITING_STATE_H
#define GT_REWRITING_STATE_H

#include "rewriting.h"
#include "writing.h"

#include <string.h>

/* When something was changed last, in the trace that is written, and by whom. */
struct gt_cause {
    uint64_t ts;
    const struct gt_m *m;
};

/* Of the collector's work; told: the new trace says that it has begun. */
struct gt_range {
    bool open, told;
};

/*
 * Whatever has an id, by which the source knows it, has a number in what is written: the same, or
 * of several traces that are put together one of its own (numbers.h).
 */
struct gt_m {
    uint64_t id, number;
    struct gt_p_row *p;
    struct gt_g_row *g;
    const struct gt_g_row *last_g; /* it, or that before */
    struct gt_lane *lane;
    struct gt_p_row *next_p; /* v1: that it is to have when it has lost the other */
    bool introduced;
};

struct gt_p_row {
    struct gt_p_row *next;
    uint64_t id, number;
    struct gt_m *m; /* that has it */
    enum gt_p_state state;
    bool told; /* its status stands in the generation */
    uint64_t seq;
    struct gt_cause left;
    bool stops; /* v1: at that time, unless it starts again at once */
    uint64_t stops_at;
    struct gt_range sweep;
    struct { /* in the source; generation: in which seq counts */
        bool known, busy;
        uint64_t seq, generation;
    } source;
};

struct gt_region {
    struct gt_region *outer;
    uint64_t task, text; /* text: the id with which it began */
    const char *name;
    const struct gt_callers *stack;
    bool told;
};

struct gt_log_line {
    uint64_t task;
    const char *key, *value; /* key NULL: none */
    const struct gt_callers *stack;
};

struct gt_g_row {
    struct gt_g_row *next;
    uint64_t id, number;
    struct gt_m *m; /* its thread, or that on which it ran last; NULL: none yet */
    struct gt_m *maker;
    enum gt_g_state state;
    uint64_t seq;
    struct gt_cause last;
    const char *reason;
    const struct gt_callers *stack, *its; /* of the open wait; where it began */
    const char *label;                    /* "": none, or, with `process`, none of its own */
    bool named;                           /* with `process`: readers know a name */
    bool first;                           /* of its process: main, for v1 */
    struct gt_region *regions;
    struct gt_log_line lock; /* for which it waits */
    uint64_t lock_ns, woke_ns;
    struct gt_range assist;
    bool unmade, listed;
    bool unborn; /* waits since it was made, which is told when that is over */
    enum { NOT_THERE, WAITED, RAN } began; /* when the part did; until its account is told */
    /* What is told and not yet done: it may be what another format has at ends of pages or calls.
     */
    enum { NOTHING, STOPS, CALL_ENDS } next_step;
    uint64_t next_ns, call_ns; /* when that is; when its last call ended, UINT64_MAX: none has */
    const char *next_reason;
    const struct gt_callers *next_stack;
    struct {
        enum gt_g_state state;
        uint64_t seq, generation;
    } source;
};

struct gt_task {
    struct gt_task *next;
    uint64_t id, parent; /* numbers, as what follows */
    const char *name;
    const struct gt_callers *stack;
    bool open;
};

extern struct gt_everybody {
    struct gt_rewriting wanted;
    struct gt_writing_source source;
    struct {
        bool known; /* something was told */
        bool begun, over;
        uint64_t generations;     /* that are over */
        uint64_t generation;      /* of the source */
        uint64_t last_generation; /* with which it was over */
        uint64_t generation_ns;   /* when ours began */
        uint64_t ns;              /* of the last event */
    } part;
    bool writes;    /* the part has begun, and is not over */
    uint64_t procs; /* CPUs */
    bool procs_due; /* to be told by who runs next */
    bool collects;  /* a collection is under way, by a program of Go's */
    bool collects_told;
    struct gt_m *stopped;         /* the world, and readers know that */
    uint64_t heap[2];             /* bytes, and goal: those of this trace alone */
    struct gt_memo m, p, g, task; /* by id, plus 1 */
    /* Of one of several: */
    struct gt_memo task_numbers; /* by id */
    struct gt_contents texts;    /* that say something else than the source's */
    struct gt_g_row *forked;     /* made by a fork, and not there yet; or NULL */
    bool left;                   /* its trace is over */
    struct gt_p_row *first_p, **last_p;
    struct gt_g_row *first_g, **last_g; /* that live, and some that have ended */
    struct gt_task *first_task, **last_task;
} * gt_all;

/* Of collections in what is written: readers know one row of them. */
extern uint64_t gt_gc_seq;

#define GT_ARGS(...) ((const uint64_t[GT_EVENT_ARGS_MAX]){__VA_ARGS__})

/* New ones are made. */
struct gt_m *gt_m_of(uint64_t thread);
struct gt_p_row *gt_p_of(uint64_t p);
struct gt_g_row *gt_g_of(uint64_t g);
struct gt_g_row *gt_g_known(uint64_t g); /* NULL: none */

/* Those that have ended leave the list. */
void gt_state_trim(void);

bool gt_wants_thread(const struct gt_m *m);
bool gt_wants(const struct gt_g_row *g);

/* Nobody's state is known any more, until it is told again; names are. */
void gt_state_forget(void);

/* Whether events of the thread are written; and the next of such a row of numbers, if so. */
bool gt_writes_of(const struct gt_m *m);
uint64_t gt_next_seq(const struct gt_m *m, uint64_t *seq);

/* An event of the thread, if events are written and that one is wanted. Returns its time. */
uint64_t gt_put(struct gt_m *m, enum gt_event_type type, uint64_t ts, const uint64_t *args);

/* The time, or one just after what others did, so that readers see that first. */
uint64_t gt_after(const struct gt_m *m, const struct gt_cause *cause, uint64_t ts);

void gt_do_proc_start(struct gt_m *m, struct gt_p_row *p, uint64_t ts);
void gt_do_proc_stop(struct gt_m *m, uint64_t ts);
void gt_do_create(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts);
/* It waits since it is made: Go's coroutines. Before Go 1.23, is told to be made later. */
void gt_do_create_waiting(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack,
                          uint64_t ts);
/* m's thread ends g's wait, be g another trace's. */
void gt_do_unblock(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts);
void gt_do_start(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* g stops, waits or calls, from now on, as its fields say. */
void gt_do_leave(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
void gt_do_call_end(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* The name of who runs there. */
void gt_do_label(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* Says what g's state is; stack: or NULL. */
void gt_do_status(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts);
void gt_do_p_status(struct gt_m *m, struct gt_p_row *p, uint64_t ts);
void gt_do_procs(struct gt_m *m, uint64_t ts);
void gt_do_task(struct gt_m *m, const struct gt_task *task, uint64_t ts);
void gt_do_region(struct gt_m *m, struct gt_region *region, uint64_t ts);
void gt_do_log(struct gt_m *m, const struct gt_log_line *log, uint64_t ts);

/* What a part of a trace, and what a generation begins with (rewriting_begin.c). */
void gt_begin_part(uint64_t ts);
void gt_begin_generation(uint64_t ts);

#endif
