/*
 * What the rooms of idle.h share: idle_ways.c (how a call waits, and where), idle_roles.c (which
 * threads are alike), idle_note.c (what is noted of each wait), idle_judge.c (the verdict for a
 * thread's places), idle.c (for a place).
 */
#pragma once

#include "whole.h"

/* The way in which a call waits. LISTEN: for events from outside, however rare they are. */
enum gt_way {
    GT_WAY_NEVER,
    GT_WAY_WORK,
    GT_WAY_EVENTS,
    GT_WAY_LISTEN,
    GT_WAY_SLEEP,
    GT_WAY_PARKED
};

enum { GT_DEPTHS = 16 };

/*
 * Where a thread waits: the place; and the purpose, which is a part of the place. A function that
 * waits for its callers is one place with a purpose for each chain of callers.
 */
struct gt_idle_keys {
    uint64_t place, purpose;
};

/* The last turn of one thread at one place. */
struct gt_turns {
    uint64_t got, gave; /* when it last went on, and when it woke a thread alike; or 0 */
    uint64_t had;       /* when it had got what it gave; or 0 */
};

/* The visits of one thread to one place for one purpose. */
struct gt_visits {
    struct gt_visits *next;         /* in `gt_idle.first` */
    const struct gt_callers *stack; /* the first stack */
    uint64_t count, waits,
        ns;                  /* count: sleeps; waits: whole ones, of one sleep or more (whole.h) */
    uint64_t answers, peers; /* answers: no work; peers: woken by a thread alike */
    uint64_t handed;         /* wake-ups of a condition variable only for its mutex */
    uint64_t ended, woken;   /* waits that ended; waits that a thread of the trace ended */
    uint64_t first, last;    /* when the first wait there began, and the last one */
    uint64_t awaited;        /* ns in which others waited for a lock that it held */
    uint64_t moves[GT_DEPTHS]; /* moves to another place, by the number of common functions */
    const struct gt_thread_state *thread;
    enum gt_kind kind;
    enum gt_way way;
    bool joins, reaps;  /* it waits for the end of a thread, or of a process */
    const char *wanted; /* the variable's name; or NULL */
    struct gt_turns *turns;
    struct gt_idle_keys key;
};

struct gt_worker {
    struct gt_visits *last, *before; /* the place of its last wait, and the other place before it */
    struct gt_whole wait;            /* that wait, with all its sleeps */
    uint64_t to;                     /* when that wait's last sleep ended */
    const struct gt_thread_state *like; /* an earlier thread that does the same; or NULL */
    uint32_t made;                      /* threads that it created, and that waited */
};

/* The sums of a place or a purpose over all threads. For a purpose only the first two. */
struct gt_idle_verdict {
    uint64_t idle, not_idle;                        /* number of waits */
    uint64_t peers, named, paired, inside, outside; /* see note_peer */
    uint64_t given_back;                            /* of peers: see gt_is_taken_and_given */
    uint64_t threads, waited; /* how many wait there; their time until another one of them woke */
};

/* All that was noted. */
extern struct gt_idle {
    bool off;
    bool serves, connects;        /* the program lets clients come, or makes connections */
    bool first_seen, older;       /* the first thread waits; the trace began after other threads */
    uint64_t worked;              /* ns in which other threads than the first ran, or called */
    const struct gt_trace *trace; /* from gt_idle_decide on */
    struct gt_visits *first;
    struct gt_memo verdicts; /* by place, and by purpose */
    struct gt_memo joined;   /* by thread: ns in which another one waited for its end */
    struct gt_memo reaping; /* by thread, and of all (0): ns in which it waited for a child's end */
} gt_idle;

enum gt_way gt_idle_way_of(const char *call);

/* The number of the program's own functions on the stack; and of those common to two stacks. */
uint32_t gt_idle_own_of(const struct gt_callers *stack);
uint32_t gt_idle_common_of(const struct gt_callers *a, const struct gt_callers *b);

/* The kinds of all frames between the thread's routine and the call. */
unsigned gt_idle_kinds_on(const struct gt_callers *stack);

/*
 * The keys of a place and a purpose. They are equal if the stack is of libraries only: then the
 * place is all code that waits through the same library.
 */
struct gt_idle_keys gt_idle_keys_of(const struct gt_callers *stack, enum gt_kind kind);

/* Whether it is known what the thread waits for when the trace ends: a lock's holder, an end. */
bool gt_idle_has_owner(const struct gt_thread_state *t);

/* Whether it is the stack of a process's first thread. */
bool gt_idle_is_main(const struct gt_callers *stack);

/* The item with that key; the first call makes it, of zeros. */
void *gt_idle_item_of(struct gt_memo *memo, uint64_t key, size_t size);
struct gt_idle_verdict *gt_idle_verdict_of(uint64_t key);
struct gt_worker *gt_idle_worker_of(const struct gt_thread_state *t);

/*
 * The role of a thread: threads with one role are alike. Threads with one routine are, unless a
 * library starts all threads in that routine: then the role is the thread's number. Of a routine
 * that only calls another function, from one line, that function tells. If it has no name, threads
 * are alike that were seen at one place in it.
 */
uint64_t gt_idle_role_of(const struct gt_thread_state *t);

/* Notes a stack of the thread, for its role. */
void gt_idle_note_begin(const struct gt_thread_state *t, const struct gt_callers *stack);

/*
 * Whether the waiter got an answer or room in a queue, but no work. The waker is a thread that it
 * created, or of a role that the waiter's role woke first. A thread that reports to its creator
 * that it has started proves nothing here. For two threads of one role see note_peer.
 */
bool gt_idle_is_answer(const struct gt_thread_state *waits, const struct gt_thread_state *by);

/* Adds the verdict for all places of one thread to the verdicts of the places. */
void gt_idle_judge_thread(struct gt_visits *const *its, size_t n);
