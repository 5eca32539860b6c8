/*
 * The states of threads (Ms), Ps, goroutines and tasks while a trace is rewritten. Each gt_do_*
 * function changes a state and writes the event that says so, if events are written. For
 * rewriting.c, rewriting_begin.c and the steps (steps.h).
 */
#pragma once

#include "rewriting_wanted.h"
#include "writing.h"

#include <string.h>

/* When a state changed last, in the written trace, and the thread whose event changed it. */
struct gt_cause {
    uint64_t ts;
    const struct gt_m *m;
};

/* A range of the collector's work; told: the written trace has its begin. */
struct gt_range {
    bool open, told;
};

/*
 * An `id` is the source's number, a `number` the written trace's. Both are equal, unless several
 * traces are merged: then numbers are unique in all of them (numbers.h).
 */
struct gt_m {
    uint64_t id, number;
    struct gt_p_row *p;
    struct gt_g_row *g;
    const struct gt_g_row *last_g; /* g, or the last g before it */
    struct gt_writing_lane *lane;
    struct gt_p_row *next_p; /* v1: the P to take when the present one stops */
    bool introduced;
};

struct gt_p_row {
    struct gt_p_row *next;
    uint64_t id, number;
    struct gt_m *m; /* the thread that has this P */
    enum gt_p_state state;
    bool told; /* the generation has its status */
    uint64_t seq;
    struct gt_cause left;
    bool stops; /* v1: the P stops at stops_at, unless it starts again at the same time */
    uint64_t stops_at;
    struct gt_range sweep;
    struct { /* state in the source; generation: the one that seq counts in */
        bool known, busy;
        uint64_t seq, generation;
    } source;
};

struct gt_user_region {
    struct gt_user_region *outer;
    uint64_t task, text; /* text: id of the name in its begin event */
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
    struct gt_m *m; /* the thread on which it runs, or ran last; NULL: none yet */
    struct gt_m *maker;
    enum gt_g_state state;
    uint64_t seq;
    struct gt_cause last;
    const char *reason;
    const struct gt_callers *stack, *its; /* stack of the open wait; start routine */
    const char *label;                    /* "": none, or, with `process`, none of its own */
    bool named;                           /* with `process`: a label event was written */
    bool first;                           /* the process's first goroutine: main, for v1 */
    struct gt_user_region *regions;
    struct gt_log_line lock; /* log of the lock it waits for */
    uint64_t lock_ns, woke_ns;
    struct gt_range assist;
    bool unmade, listed;
    bool unborn; /* waits since its creation; the create event is written when the wait ends */
    enum { NOT_THERE, WAITED, RAN } began; /* state at the part's begin, until its account */
    /* A step of the source that is not done yet: an artefact, perhaps, of pages or calls (steps.h).
     */
    enum { NOTHING, STOPS, CALL_ENDS } next_step;
    uint64_t next_ns, call_ns; /* time of the step; end of the last call, UINT64_MAX: none */
    const char *next_reason;
    const struct gt_callers *next_stack;
    struct {
        enum gt_g_state state;
        uint64_t seq, generation;
    } source;
};

struct gt_rewritten_task {
    struct gt_rewritten_task *next;
    uint64_t id, parent; /* numbers of the written trace */
    const char *name;
    const struct gt_callers *stack;
    bool open;
};

extern struct gt_everybody {
    struct gt_rewriting wanted;
    struct gt_writing_source source;
    struct {
        bool known; /* an event was read */
        bool begun, over;
        uint64_t generations;     /* how many generations were written */
        uint64_t generation;      /* the source's current one */
        uint64_t last_generation; /* the source's, in which the part ended */
        uint64_t generation_ns;   /* when the written generation began */
        uint64_t ns;              /* time of the last event */
    } part;
    bool writes;     /* the part has begun, and is not over */
    uint64_t procs;  /* CPUs */
    bool procs_due;  /* the next thread that runs writes procs */
    bool collecting; /* a collection is under way */
    bool collects;   /* it is a Go program's */
    bool collects_told;
    struct gt_m *stopped;         /* the thread whose event stopped the world; or NULL */
    uint64_t heap[2];             /* bytes and goal, of this trace alone */
    struct gt_memo m, p, g, task; /* by id, plus 1 */
    /* When merging: */
    struct gt_memo task_numbers; /* by id */
    struct gt_contents texts;    /* rewritten texts, which differ from the source's */
    struct gt_g_row *forked;     /* created by a fork, not yet seen in its trace; or NULL */
    bool left;                   /* the trace is over */
    struct gt_p_row *first_p, **last_p;
    struct gt_g_row *first_g, **last_g; /* that live, and some that have ended */
    struct gt_rewritten_task *first_task, **last_task;
} * gt_all;

/* Events that follow are of that trace: sets gt_all. */
void gt_rewriting_use(struct gt_everybody *all);

/* Sequence number of collections in the written trace: readers know one sequence for all. */
extern uint64_t gt_gc_seq;

#define GT_ARGS(...) ((const uint64_t[GT_EVENT_ARGS_MAX]){__VA_ARGS__})

/* Find the row of an id; all but gt_g_known make a new row if there is none. */
struct gt_m *gt_m_of(uint64_t thread);
struct gt_p_row *gt_p_of(uint64_t p);
struct gt_g_row *gt_g_of(uint64_t g);
struct gt_g_row *gt_g_known(uint64_t g); /* NULL: none */

/* Takes goroutines that have ended off the list. */
void gt_state_trim(void);

bool gt_wants_thread(const struct gt_m *m);
bool gt_wants(const struct gt_g_row *g);

/* After a gap: forgets all states, until the source gives them again, but keeps names. */
void gt_state_forget(void);

/* Whether events of the thread are written; the next sequence number, counted up only if so. */
bool gt_writes_of(const struct gt_m *m);
uint64_t gt_next_seq(const struct gt_m *m, uint64_t *seq);

/* Writes an event of the thread, if events are written and it is wanted. Returns its time. */
uint64_t gt_put(struct gt_m *m, enum gt_event_type type, uint64_t ts, const uint64_t *args);

/* The time in the written trace. */
uint64_t gt_ts_of(uint64_t ns);

/* ts, or, if another thread's cause is not earlier, just after it: readers see the cause first. */
uint64_t gt_after(const struct gt_m *m, const struct gt_cause *cause, uint64_t ts);

void gt_do_proc_start(struct gt_m *m, struct gt_p_row *p, uint64_t ts);
void gt_do_proc_stop(struct gt_m *m, uint64_t ts);
void gt_do_create(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts);
/* Creates g waiting: Go's coroutines. For formats before Go 1.23 the event comes after the wait. */
void gt_do_create_waiting(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack,
                          uint64_t ts);
/* m ends g's wait; g may be of another trace. */
void gt_do_unblock(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts);
void gt_do_start(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* g stops, waits or calls from now on, as g->state, reason and stack say. */
void gt_do_leave(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
void gt_do_call_end(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* The call is over, and m has lost its P: g is runnable. */
void gt_do_call_end_blocked(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* Writes the name of g, which runs on m. */
void gt_do_label(struct gt_m *m, struct gt_g_row *g, uint64_t ts);
/* Writes the status of g; stack may be NULL. */
void gt_do_status(struct gt_m *m, struct gt_g_row *g, const struct gt_callers *stack, uint64_t ts);
void gt_do_p_status(struct gt_m *m, struct gt_p_row *p, uint64_t ts);
void gt_do_procs(struct gt_m *m, uint64_t ts);
void gt_do_task(struct gt_m *m, const struct gt_rewritten_task *task, uint64_t ts);
void gt_do_region(struct gt_m *m, struct gt_user_region *region, uint64_t ts);
void gt_do_log(struct gt_m *m, const struct gt_log_line *log, uint64_t ts);

/* Write the beginning of a part of a trace, and of a generation (rewriting_begin.c). */
void gt_begin_part(uint64_t ts);
void gt_begin_generation(uint64_t ts);
