/* See replay.h. */
#include "replay.h"

#include "encoder/base/queue.h"
#include "encoder/read/need.h"

#include <stdlib.h>

/* A thread on its way through its program. */
struct runner {
    const struct gt_op *op;
    size_t n, next;
    bool waited, done, blocked;
    bool retries;         /* woken for a lock, and asks for it again */
    bool gave;            /* gave the lock of the change up for a wait, and must take it again */
    bool found;           /* it polled, and is needed: it goes on to wake the waiter */
    uint64_t pause;       /* length of its last sleep while it polled; 0: it did not */
    uint32_t next_waiter; /* the next waiter for the same lock, or GT_NOBODY */
};

struct lock {
    uint32_t owner, first, last; /* the holder, or GT_NOBODY; the queue of waiters */
    bool waking;                 /* a waiter was woken and has not asked again yet */
    uint64_t free;               /* free slots of a semaphore */
};

struct run {
    const struct gt_program *program;
    const struct gt_change *change;
    struct runner *lane; /* by thread */
    struct lock *lock;
    uint8_t *posted;                  /* by edge: 1 posted, 2 awaited */
    struct gt_queue timed, computing; /* keys: time of end; amount of `work` at the end */
    double cpus, work;                /* work: computed so far by each thread that is on a CPU */
    uint64_t now, pauses;             /* pauses: sleeps of a poll that the trace does not have */
    struct gt_outcome outcome;
};

static void wake(struct run *run, uint32_t thread, uint64_t delay)
{
    struct runner *lane = &run->lane[thread];
    lane->blocked = false;
    lane->waited = true;
    gt_queue_push(&run->timed, (struct gt_pair){run->now + delay, thread});
}

/* The thread's run-queue delay between its wake-up and asking for the lock again. */
static uint64_t delay_of(const struct run *run, const struct runner *lane)
{
    const struct gt_op *after = lane->next + 1 < lane->n ? &lane->op[lane->next + 1] : NULL;
    return after && after->type == GT_OP_DELAY && !run->change->cpus ? after->ns : 0;
}

/*
 * Releases a lock as mutexes do: the first thread to come takes it, and one waiter at a time is
 * woken.
 */
static void release(struct run *run, struct lock *lock)
{
    lock->owner = GT_NOBODY;
    if (lock->first == GT_NOBODY || lock->waking)
        return;
    uint32_t thread = lock->first;
    struct runner *lane = &run->lane[thread];
    lock->first = lane->next_waiter;
    lock->waking = lane->retries = true;
    wake(run, thread, delay_of(run, lane));
}

static void queue_up(struct run *run, struct lock *lock, uint32_t thread)
{
    struct runner *lane = &run->lane[thread];
    lane->next_waiter = GT_NOBODY;
    if (lock->first == GT_NOBODY)
        lock->first = thread;
    else
        run->lane[lock->last].next_waiter = thread;
    lock->last = thread;
    lane->blocked = true;
}

/* Whether the thread has taken the lock (GT_OP_PASS: could have). If not, it waits. */
static bool acquire(struct run *run, uint32_t thread, const struct gt_op *op)
{
    struct runner *lane = &run->lane[thread];
    struct lock *lock = &run->lock[op->arg];
    if (run->change->free_lock && run->change->lock == op->arg)
        return true;
    lock->waking &= !lane->retries;
    if (lock->owner != GT_NOBODY && lock->owner != thread) {
        lane->retries = false;
        queue_up(run, lock, thread);
        return false;
    }
    lane->waited = false; /* the delay is over */
    lane->retries = false;
    if (op->type == GT_OP_ACQUIRE)
        lock->owner = thread;
    else if (lock->owner == GT_NOBODY)
        release(run, lock);
    return true;
}

/* The first thread to come takes a slot. It is not known which thread will give one back. */
static bool take_slot(struct run *run, uint32_t thread, uint32_t lock)
{
    if (run->change->free_lock && run->change->lock == lock)
        return true;
    if (!run->lock[lock].free) {
        queue_up(run, &run->lock[lock], thread);
        return false;
    }
    run->lock[lock].free--;
    return true;
}

static void give_slot(struct run *run, uint32_t lock)
{
    struct lock *its = &run->lock[lock];
    uint32_t thread = its->first;
    if (thread == GT_NOBODY) {
        its->free++;
        return;
    }
    its->first = run->lane[thread].next_waiter;
    wake(run, thread, 0);
}

static bool is_for_slot(const struct run *run, uint32_t edge)
{
    uint32_t lock = run->program->edge[edge].lock;
    return lock != GT_NOBODY && run->program->slots[lock];
}

static bool await_edge(struct run *run, uint32_t thread, const struct gt_op *op)
{
    struct runner *lane = &run->lane[thread];
    if (is_for_slot(run, op->arg))
        return take_slot(run, thread, run->program->edge[op->arg].lock);
    if (run->posted[op->arg] == 1)
        return true;
    run->posted[op->arg] = 2;
    lane->blocked = true;
    if (run->change->across && run->lock[run->change->lock].owner == thread) {
        lane->gave = true;
        release(run, &run->lock[run->change->lock]);
    }
    return false;
}

/* Whether the thread has the lock again that it gave up for a wait. */
static bool has_taken_back(struct run *run, uint32_t thread)
{
    struct gt_op take = gt_op_make(GT_OP_ACQUIRE, run->change->lock, 0);
    struct runner *lane = &run->lane[thread];
    lane->gave = !acquire(run, thread, &take);
    return !lane->gave;
}

static void post(struct run *run, uint32_t edge)
{
    if (is_for_slot(run, edge)) {
        give_slot(run, run->program->edge[edge].lock);
        return;
    }
    bool awaited = run->posted[edge] == 2;
    run->posted[edge] = 1;
    if (awaited && run->lane[run->program->edge[edge].waiter].blocked)
        wake(run, run->program->edge[edge].waiter, 0);
}

/* Threads share many small pieces of work, but not one long piece. */
static bool is_divisible(const struct run *run, const struct gt_op *op)
{
    enum { LEAST_PIECES = 10 };
    return op->ns * LEAST_PIECES < run->program->to - run->program->from;
}

static uint64_t length(const struct run *run, uint32_t thread, const struct gt_op *op)
{
    const struct gt_change *change = run->change;
    double part = change->section ? change->section[op->arg] : 1;
    part *= change->thread && !op->held && is_divisible(run, op) ? change->thread[thread] : 1;
    if (run->program->sections->at[op->arg].kind == GT_SCHED)
        part = change->cpus ? 0 : change->section ? change->section[op->arg] : 1;
    return part == 1 ? op->ns : (uint64_t)((double)op->ns * part);
}

/* Polls ---------------------------------------------------------------------------------------- */

enum { NO_PAUSE_NS = 20000, PAUSES_MOST = 100000 };

static bool is_awaited(const struct run *run, uint32_t edge)
{
    return run->posted[edge] == 2 || is_for_slot(run, edge);
}

/* Whether the thread that this one wakes next already waits for that. */
static bool is_needed(const struct run *run, const struct runner *lane)
{
    for (size_t i = lane->next; i < lane->n; i++) {
        if (lane->op[i].type == GT_OP_POST)
            return is_awaited(run, lane->op[i].arg);
    }
    return true;
}

/* The length of a sleep of the thread that polls. It looks before each whether it is needed. */
static uint64_t pause_of(const struct run *run, struct runner *lane, uint64_t ns)
{
    lane->found = lane->found || is_needed(run, lane);
    lane->pause = run->change->no_poll ? NO_PAUSE_NS : ns;
    return lane->found || run->change->no_poll ? 0 : ns;
}

/* Whether the thread that polls must look again before it can wake the waiter. */
static bool polls_on(struct run *run, uint32_t thread, uint32_t edge)
{
    struct runner *lane = &run->lane[thread];
    bool over = lane->found || !lane->pause || is_awaited(run, edge);
    if (thread != run->program->poller)
        return false;
    if (over || run->pauses++ > PAUSES_MOST) {
        lane->found = false;
        lane->pause = 0;
        return false;
    }
    gt_queue_push(&run->timed, (struct gt_pair){run->now + lane->pause, thread});
    return true;
}

/* The thread does all that takes no time, up to the next thing that takes some. */
static void go_on(struct run *run, uint32_t thread)
{
    struct runner *lane = &run->lane[thread];
    if (lane->gave && !has_taken_back(run, thread))
        return;
    while (lane->next < lane->n) {
        const struct gt_op *op = &lane->op[lane->next];
        uint64_t ns;
        if ((op->type == GT_OP_ACQUIRE || op->type == GT_OP_PASS) && !acquire(run, thread, op))
            return;
        if (op->type == GT_OP_POST && polls_on(run, thread, op->arg))
            return;
        lane->next++;
        switch (op->type) {
        case GT_OP_DELAY:
            if (!lane->waited)
                break;
            __attribute__((fallthrough));
        case GT_OP_WORK:
            ns = length(run, thread, op);
            if (thread == run->program->poller && op->arg == run->program->poll)
                ns = pause_of(run, lane, ns);
            if (!ns)
                break;
            lane->waited = false;
            gt_queue_push(&run->timed, (struct gt_pair){run->now + ns, thread});
            return;
        case GT_OP_COMPUTE:
            ns = length(run, thread, op);
            if (!ns)
                break;
            lane->waited = false;
            gt_queue_push(&run->computing,
                          (struct gt_pair){(uint64_t)(run->work + (double)ns), thread});
            return;
        case GT_OP_POST: post(run, op->arg); break;
        case GT_OP_AWAIT:
            run->outcome.waits++;
            if (!await_edge(run, thread, op))
                return;
            break;
        case GT_OP_ACQUIRE:
        case GT_OP_PASS: run->outcome.waits++; break;
        case GT_OP_RELEASE:
            if (run->lock[op->arg].owner == thread)
                release(run, &run->lock[op->arg]);
            break;
        }
    }
    lane->done = true;
}

/* The operation that the thread is blocked in. */
static const struct gt_op *wait_of(const struct runner *lane)
{
    const struct gt_op *next = lane->next < lane->n ? &lane->op[lane->next] : NULL;
    bool locks = next && (next->type == GT_OP_ACQUIRE || next->type == GT_OP_PASS);
    return locks ? next : &lane->op[lane->next - 1];
}

/* No waker is left. Ends the wait that ended first in the trace. False: no thread is blocked. */
static bool force(struct run *run)
{
    const struct gt_program *p = run->program;
    uint32_t found = GT_NOBODY;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < p->roles; i++) {
        if (run->lane[i].blocked && wait_of(&run->lane[i])->ns < least) {
            least = wait_of(&run->lane[i])->ns;
            found = i;
        }
    }
    if (found == GT_NOBODY)
        return false;
    run->outcome.forced++;
    const struct gt_op *op = wait_of(&run->lane[found]);
    if (run->lane[found].gave && op->type == GT_OP_AWAIT && run->posted[op->arg] == 1) {
        struct lock *given = &run->lock[run->change->lock];
        given->waking = false;
        release(run, given);
        return true;
    }
    if (op->type == GT_OP_AWAIT && is_for_slot(run, op->arg)) {
        give_slot(run, run->program->edge[op->arg].lock);
        return true;
    }
    if (op->type == GT_OP_AWAIT) {
        run->posted[op->arg] = 1;
        wake(run, found, 0);
        return true;
    }
    struct lock *lock = &run->lock[op->arg];
    lock->waking = false;
    release(run, lock); /* the first waiter gets the lock: all waiters are in one circle */
    return true;
}

/*
 * Takes the thread whose stretch ends next, and sets `now` to that time. False: no thread does
 * anything.
 */
static bool next_thread(struct run *run, uint32_t *thread)
{
    double share = run->computing.n && run->cpus > 0 && (double)run->computing.n > run->cpus
                       ? run->cpus / (double)run->computing.n
                       : 1;
    uint64_t computed = UINT64_MAX;
    if (run->computing.n) {
        double left = (double)run->computing.at[0].key - run->work;
        computed = run->now + (uint64_t)(left > 0 ? left / share : 0);
    }
    bool timed = run->timed.n && run->timed.at[0].key <= computed;
    if (!timed && !run->computing.n)
        return false;
    uint64_t at = timed ? run->timed.at[0].key : computed;
    run->work += (double)(at - run->now) * share;
    run->now = at;
    *thread = (uint32_t)gt_queue_pop(timed ? &run->timed : &run->computing);
    return true;
}

static void prepare(struct run *run)
{
    const struct gt_program *p = run->program;
    size_t locks = p->sections->graph->locks;
    run->lane = gt_need(malloc((p->roles + 1) * sizeof *run->lane));
    run->lock = gt_need(malloc((locks + 1) * sizeof *run->lock));
    for (size_t i = 0; i < locks; i++)
        run->lock[i] = (struct lock){GT_NOBODY, GT_NOBODY, GT_NOBODY, false, 0};
    if (run->change->slot)
        run->lock[run->change->lock].free = 1;
    run->posted = gt_need(calloc(p->edges + 1, 1));
    run->timed.at = gt_need(malloc((p->roles + 1) * sizeof *run->timed.at));
    run->computing.at = gt_need(malloc((p->roles + 1) * sizeof *run->computing.at));
    for (uint32_t i = 0; i < p->roles; i++) {
        struct runner *lane = &run->lane[i];
        *lane = (struct runner){.op = p->role[i].op, .n = p->role[i].n};
        uint64_t begin = p->sections->graph->lane[i].begin;
        bool created = lane->n && lane->op[0].type == GT_OP_AWAIT && lane->op[0].ns == begin;
        run->now = begin > p->from && !created ? begin - p->from : 0;
        gt_queue_push(&run->timed, (struct gt_pair){run->now, i});
    }
    run->now = 0;
}

struct gt_outcome gt_replay_run(const struct gt_program *p, const struct gt_change *change,
                                uint64_t *end)
{
    struct run run = {.program = p, .change = change, .cpus = change->cpus ? 0 : p->cpus};
    uint32_t thread;
    prepare(&run);
    for (uint32_t i = 0; end && i < p->roles; i++)
        end[i] = UINT64_MAX;
    while (!run.lane[p->target].done) {
        if (!next_thread(&run, &thread)) {
            if (!force(&run))
                break;
            continue;
        }
        go_on(&run, thread);
        if (end && run.lane[thread].done)
            end[thread] = run.now;
    }
    run.outcome.ns = run.now;
    free(run.lane);
    free(run.lock);
    free(run.posted);
    free(run.timed.at);
    free(run.computing.at);
    return run.outcome;
}
