/*
 * What the threads of a trace did, from its events. Each thread is a goroutine that runs, waits,
 * is in a system call, or is runnable.
 */
#pragma once

#include "history.h"
#include "locks.h"
#include "running.h"
#include "shares.h"
#include "trace.h"

extern const char *const gt_kind_names[GT_KINDS];

struct gt_thread_state {
    struct gt_thread_state *next; /* in order of appearance */
    uint64_t g, thread;           /* thread: the kernel's number; GT_NO_THREAD: never ran */
    uint32_t number;              /* in order of appearance, from 0 */
    const char *name;             /* the name it gave itself; "": none */
    const char *routine;          /* where it began; "": not known */
    bool begins_in_rust;          /* the routine is Rust's own, as long as no stack told another */
    uint64_t seq, generation;     /* generation: the one in which seq counts */
    enum gt_g_state state;
    const char *reason;                     /* of the last wait */
    enum gt_kind waits_as;                  /* the kind of that reason */
    const struct gt_callers *its;           /* where it began; or NULL */
    const struct gt_thread_state *maker;    /* who created it; NULL: not known */
    const struct gt_callers *stack;         /* of the last wait or call */
    uint64_t begin, since, end;             /* ns; since: when this state began */
    uint64_t lost;                          /* when it lost its CPU without a wait; or 0 */
    bool ended;                             /* else it was alive when the trace ended */
    uint64_t ns[GT_KINDS], count[GT_KINDS]; /* count: how many are over */
    uint64_t slept;                         /* how many waits it has slept in */
    struct gt_wanted wanted;                /* of the last wait */
    const struct gt_blocked_row *at_end;    /* its wait when the trace ends; or NULL */
    bool awaited;                           /* then another thread waits for a lock of this one */
    uint64_t wanted_at, woke;               /* when the log said so; when it last began to run */
    const struct gt_callers *stopped_at; /* of its last wait or call; `stack` may differ by now */
    uint64_t began;                      /* when that wait began: see gt_sleeps_on */
    struct gt_stream *call;              /* where its last call began; or NULL */
    bool again;                          /* after a spurious wake-up it waits for the same */
    bool polls;                          /* its last wait is a sleep of polled.h */
    struct gt_polled *polled;            /* see polled.h; NULL: it never polled */
    struct gt_history history;
    struct gt_stretches off; /* when it had no CPU, and was not waiting */
    struct gt_shares shares; /* only with an account */
    bool unknown;            /* its usage after the last row is not known */
};

/* The name that the thread gave itself, else its routine; "": neither is known. */
static inline const char *gt_name_or_routine(const struct gt_thread_state *t)
{
    return *t->name ? t->name : t->routine;
}

/* A stretch of time in one state. It is over; or, with !ended, the end of the trace cuts it. */
struct gt_span {
    const struct gt_thread_state *thread;
    enum gt_kind kind;
    uint64_t from, ns;
    uint64_t began;                   /* when its wait began: see gt_sleeps_on */
    const struct gt_callers *stack;   /* of this wait or call, or the one before; or NULL */
    const struct gt_thread_state *by; /* the other thread that ended the wait, or NULL */
    const struct gt_callers *waker;   /* where that thread ended it */
    uint64_t waker_off;               /* how much of the wait that thread had no CPU */
    const struct gt_wanted *wanted;   /* what it waits for; NULL: not known */
    uint64_t p; /* where it ended; after a GT_SCHED: where the thread ran then; or GT_NO_P */
    bool again; /* the wait goes on: a spurious wake-up, or a wait for the mutex */
    bool ended;
};

/*
 * Whether the span is a further sleep of the wait that `before` belongs to. before: an earlier span
 * of the thread; zeros if there is none. A thread that is woken for a mutex, and finds it taken
 * again, sleeps on in the same call: the reader gives all sleeps of such a wait one time `began`.
 */
static inline bool gt_sleeps_on(const struct gt_span *before, const struct gt_span *span)
{
    return before->thread && span->began < span->from && span->began == before->began;
}

struct gt_threads {
    struct gt_trace *trace;
    /* Kinds of reasons that were looked at lately; a text's address decides the place. */
    struct {
        const char *reason;
        enum gt_kind kind;
    } recent[16];
    void (*span)(void *arg, const struct gt_span *span); /* or NULL */
    /* A CPU sample; or NULL. gt_audience says when it is called. */
    void (*sample)(void *arg, const struct gt_thread_state *thread, const struct gt_callers *stack,
                   uint64_t ns);
    /*
     * Called after each event, but those of Ps, has had its effect; or NULL. thread: the one that
     * the event is done to, or that does it, or NULL.
     */
    void (*event)(void *arg, const struct gt_happening *event, const struct gt_thread_state *thread,
                  uint64_t ns);
    /* A hold of a lock that the trace has, when it is over; or NULL. */
    void (*hold)(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold);
    /* What a thread has used between these times (thread NULL: the tracer's own); or NULL. */
    void (*account)(void *arg, const struct gt_thread_state *thread, uint64_t from, uint64_t to,
                    const struct gt_usage *used);
    void *arg;
    bool keep_history; /* fills gt_thread_state.history */
    bool keep_running; /* fills `running` and gt_thread_state.off: 24 bytes a switch */
    struct gt_thread_state *first, **last;
    uint64_t n;
    struct gt_memo by_g;
    bool accounts;         /* the trace has accounts */
    uint64_t all_until;    /* ns; the usage of all threads is known up to then */
    struct gt_halts halts; /* of the process */
    uint64_t tracer_ns;    /* CPU time that the tracer's own thread has used */
    uint64_t cpus;         /* how many Ps are CPUs, whose threads the kernel tells; 0: none */
    uint64_t machine_cpus; /* of the machine; 0: not known */
    struct gt_running running;
    struct gt_memo lent; /* by P: the stream in whose call others may steal it; Go's own traces */
    struct gt_locks locks;
};

/* What the thread is doing now. */
enum gt_kind gt_kind_of(const struct gt_thread_state *t);

/* A goroutine's thread, or NULL. */
struct gt_thread_state *gt_threads_find(const struct gt_threads *threads, uint64_t g);

/*
 * Calls fn with what the thread did between the two times, as far as it is known. Needs
 * keep_history. Returns how much of the time is known.
 */
uint64_t gt_threads_doing(const struct gt_thread_state *t, uint64_t from, uint64_t to,
                          gt_past_fn *fn, void *arg);

/* Reads the trace, which is open; returns what gt_trace_read does. */
bool gt_threads_read(struct gt_threads *threads, struct gt_trace *trace);
