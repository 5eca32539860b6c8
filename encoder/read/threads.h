/*
 * What the threads of a trace did, from its events: each is a goroutine that runs, waits, is in a
 * system call or could run and does not.
 */
#ifndef GT_THREADS_H
#define GT_THREADS_H

#include "history.h"
#include "locks.h"
#include "running.h"
#include "shares.h"
#include "trace.h"

extern const char *const gt_kind_names[GT_KINDS];

struct gt_thread_state {
    struct gt_thread_state *next; /* in order of appearance */
    uint64_t g, thread;           /* thread: as the kernel numbers them, GT_NO_THREAD: never ran */
    uint32_t number;              /* in order of appearance, from 0 */
    const char *name;             /* that it gave itself, "" for none */
    const char *routine;          /* where it began, "" if that is not known */
    uint64_t seq, generation;     /* generation: in which seq counts */
    enum gt_g_state state;
    const char *reason;                     /* of the last wait */
    enum gt_kind waits_as;                  /* what that reason is */
    const struct gt_callers *its;           /* where it began; or NULL */
    const struct gt_thread_state *maker;    /* who created it; NULL: not known */
    const struct gt_callers *stack;         /* of the last wait or call */
    uint64_t begin, since, end;             /* ns; since: of this state */
    uint64_t lost;                          /* when it lost its CPU, and did not wait; or 0 */
    bool ended;                             /* else it lives when the trace ends */
    uint64_t ns[GT_KINDS], count[GT_KINDS]; /* count: of those that are over */
    struct gt_wanted wanted;                /* of the last wait */
    const struct gt_blocked_row *at_end;    /* that it is in when the trace ends; or NULL */
    uint64_t wanted_at, woke;               /* when that was told; when it last began to run */
    struct gt_stream *call;                 /* where it was in a call last; or NULL */
    bool again;                             /* it was woken in vain, and waits for the same */
    struct gt_history history;
    struct gt_stretches off; /* when it had no CPU, and did not wait for anything */
    struct gt_shares shares; /* where there is an account */
    bool unknown;            /* what it has used after the last row */
};

/* A stretch of time that is over, or, !ended, that the end of the trace cuts. */
struct gt_span {
    const struct gt_thread_state *thread;
    enum gt_kind kind;
    uint64_t from, ns;
    const struct gt_callers *stack; /* of the wait or call it is, or that was before it; or NULL */
    const struct gt_thread_state *by; /* the other thread that ended the wait, or NULL */
    const struct gt_callers *waker;   /* where it did */
    uint64_t waker_off;               /* how much of it that one had no CPU */
    const struct gt_wanted *wanted;   /* what it waits for; NULL: nothing that is told */
    uint64_t p; /* where it ended, of a GT_SCHED: where it ran then; or GT_NO_P */
    bool again; /* it goes on: the thread was woken in vain, or has to wait for the mutex */
    bool ended;
};

struct gt_threads {
    struct gt_trace *trace;
    void (*span)(void *arg, const struct gt_span *span); /* or NULL */
    /* A sample of the CPU; or NULL. When it is told see gt_audience. */
    void (*sample)(void *arg, const struct gt_thread_state *thread, const struct gt_callers *stack,
                   uint64_t ns);
    /*
     * Each event but those of Ps, when it has had its effect; thread: that it is done to, or that
     * does it; NULL: none. Or NULL.
     */
    void (*event)(void *arg, const struct gt_happening *event, const struct gt_thread_state *thread,
                  uint64_t ns);
    /* A hold of a lock that is told, when it is over; or NULL. */
    void (*hold)(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold);
    /* What a thread has used between these times, NULL: the tracer's own; or NULL. */
    void (*account)(void *arg, const struct gt_thread_state *thread, uint64_t from, uint64_t to,
                    const struct gt_usage *used);
    void *arg;
    bool keep_history; /* gt_thread_state.history is wanted */
    bool keep_running; /* `running` and gt_thread_state.off are wanted: 24 bytes a switch */
    struct gt_thread_state *first, **last;
    uint64_t n;
    struct gt_memo by_g;
    bool accounts;      /* the trace has them */
    uint64_t all_until; /* ns; of no thread it is not known what it had used by then */
    uint64_t tracer_ns; /* of CPU, that the tracer's own thread has used */
    uint64_t cpus;      /* so many Ps are CPUs, as the kernel tells who has them; 0: none */
    struct gt_running running;
    struct gt_memo lent; /* by P: in whose call others may steal it; of Go's own traces */
    struct gt_locks locks;
};

/* What the thread does at the moment. */
enum gt_kind gt_kind_of(const struct gt_thread_state *t);

/* A goroutine's thread, or NULL. */
struct gt_thread_state *gt_threads_find(const struct gt_threads *threads, uint64_t g);

/*
 * Calls fn with what the thread did between the two times, with keep_history, as far as that is
 * known. Returns how much of it is.
 */
uint64_t gt_threads_doing(const struct gt_thread_state *t, uint64_t from, uint64_t to,
                          gt_past_fn *fn, void *arg);

/* Reads the trace, which is open; as gt_trace_read. */
bool gt_threads_read(struct gt_threads *threads, struct gt_trace *trace);

#endif
