/*
 * Finds threads that can never go on. Each thread waits for at most one lock or thread, so one way
 * leads on from each. A deadlock is a way that returns to its beginning, or ends at a thread that
 * no longer exists. Only certain steps count: of one moment, and without a timeout. If it is only
 * known that some other thread has to act, all threads must wait.
 */
#include "pools.h"
#include "still.h"

#include "encoder/base/cycle.h"
#include "encoder/read/need.h"

/* The thread that has to end this thread's wait. NULL: it may time out, or is not certain. */
static const void *next_of(const void *still, const void *thread)
{
    const struct gt_thread_wait *w = &((const struct gt_still_thread *)thread)->wait;
    return w->certain && w->owned == GT_OWNER_THREAD ? gt_still_task(still, w->owner) : NULL;
}

static struct gt_deadlock *add(struct gt_still *s, const char *kind)
{
    struct gt_deadlock *d = GT_ADD(s->deadlock, s->deadlocks);
    d->kind = kind;
    return d;
}

static void add_cycle(struct gt_still *s, const struct gt_still_thread *first, bool *stuck)
{
    struct gt_deadlock *d = add(s, "cycle");
    const struct gt_still_thread *t = first;
    do {
        size_t i = (size_t)(t - s->task);
        *GT_ADD(d->task, d->tasks) = i;
        stuck[i] = true;
        t = next_of(s, t);
    } while (t != first);
}

/*
 * Whether no thread can go on: each waits, without a timeout, for what only another of them could
 * do. It is used if no other deadlock was found, and every thread counts.
 */
static bool all_wait(const struct gt_still *s)
{
    bool all = s->tasks > 1 && !s->told;
    for (size_t i = 0; i < s->tasks; i++) {
        const struct gt_thread_wait *w = &s->task[i].wait;
        all &= s->task[i].state == GT_WAITS &&
               (w->within || (w->certain && w->owned == GT_OWNER_THREAD));
    }
    return all;
}

void gt_find_deadlocks(struct gt_still *s)
{
    bool *stuck = gt_need(calloc(s->tasks, sizeof *stuck));
    for (size_t i = 0; i < s->tasks; i++) {
        const struct gt_still_thread *entry = gt_cycle_entry(next_of, s, &s->task[i]);
        if (entry && !stuck[entry - s->task])
            add_cycle(s, entry, stuck);
    }
    for (size_t i = 0; i < s->tasks; i++) {
        const struct gt_thread_wait *w = &s->task[i].wait;
        bool gone = w->owned == GT_OWNER_ENDED || w->owned == GT_OWNER_LEFT;
        bool ended = w->certain && gone;
        if (stuck[i] || (!ended && !w->refused))
            continue;
        struct gt_deadlock *d = add(s, ended ? "ended" : "refused");
        *GT_ADD(d->task, d->tasks) = i;
    }
    free(stuck);
    gt_find_pools(s);
    if (s->deadlocks || !all_wait(s))
        return;
    struct gt_deadlock *d = add(s, "all");
    for (size_t i = 0; i < s->tasks; i++)
        *GT_ADD(d->task, d->tasks) = i;
}
