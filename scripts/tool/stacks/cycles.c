/*
 * Threads that can never go on. Each waits for one lock or one thread at most: from any of them
 * leads one way, and a deadlock is where it comes round, or ends at a thread that is no more. Only
 * steps count that are certain: those of one moment, without a time at which the wait is over.
 * Where it is only known that another thread has to do something, all of them have to wait.
 */
#include "still.h"

#include "encoder/read/need.h"

enum { NOBODY = -1 };

/* Who ends this one's wait, as an index; NOBODY: it ends by itself, or that is not certain. */
static long next_of(const struct gt_still *s, size_t i)
{
    const struct gt_wait *w = &s->task[i].wait;
    if (!w->certain || w->owned != GT_OWNER_THREAD)
        return NOBODY;
    const struct gt_task *owner = gt_still_task(s, w->owner);
    return owner ? owner - s->task : NOBODY;
}

static struct gt_deadlock *add(struct gt_still *s, const char *kind)
{
    struct gt_deadlock *d = GT_MORE(s->deadlock, s->deadlocks);
    d->kind = kind;
    return d;
}

static void add_cycle(struct gt_still *s, size_t first)
{
    struct gt_deadlock *d = add(s, "cycle");
    size_t i = first;
    do {
        *GT_MORE(d->task, d->tasks) = i;
        i = (size_t)next_of(s, i);
    } while (i != first);
}

/* On each way the threads are marked with its number: one that is met again is on a circle. */
static bool *find_cycles(struct gt_still *s)
{
    size_t *way = gt_need(calloc(s->tasks, sizeof *way));
    bool *stuck = gt_need(calloc(s->tasks, sizeof *stuck));
    for (size_t start = 0; start < s->tasks; start++) {
        long i = (long)start;
        while (i != NOBODY && !way[i]) {
            way[i] = start + 1;
            i = next_of(s, (size_t)i);
        }
        if (i == NOBODY || way[i] != start + 1)
            continue;
        add_cycle(s, (size_t)i);
        const struct gt_deadlock *d = &s->deadlock[s->deadlocks - 1];
        for (size_t k = 0; k < d->tasks; k++)
            stuck[d->task[k]] = true;
    }
    free(way);
    return stuck;
}

/*
 * Whether none of the threads can go on: each waits, without a timeout, for what only another one
 * of them could do. Nothing else is found then, and each counts.
 */
static bool all_wait(const struct gt_still *s)
{
    bool all = s->tasks > 1 && !s->told;
    for (size_t i = 0; i < s->tasks; i++) {
        const struct gt_wait *w = &s->task[i].wait;
        all &= s->task[i].state == GT_WAITS &&
               (w->within || (w->certain && w->owned == GT_OWNER_THREAD));
    }
    return all;
}

void gt_find_deadlocks(struct gt_still *s)
{
    bool *stuck = find_cycles(s);
    for (size_t i = 0; i < s->tasks; i++) {
        const struct gt_wait *w = &s->task[i].wait;
        bool gone = w->owned == GT_OWNER_ENDED || w->owned == GT_OWNER_LEFT;
        bool ended = w->certain && gone;
        if (stuck[i] || (!ended && !w->refused))
            continue;
        struct gt_deadlock *d = add(s, ended ? "ended" : "refused");
        *GT_MORE(d->task, d->tasks) = i;
    }
    free(stuck);
    if (s->deadlocks || !all_wait(s))
        return;
    struct gt_deadlock *d = add(s, "all");
    for (size_t i = 0; i < s->tasks; i++)
        *GT_MORE(d->task, d->tasks) = i;
}
