/* See holding.h. */
#include "holding.h"

#include "steps.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/reading.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_TASK UINT64_C(1000000000) /* programs count their tasks from 1 */

/*
 * A hold's log comes at its end and gives its length in three digits. So the hold may have begun
 * earlier, by LATE_NS and 1/LATE_PART of its length: before the thread's next event.
 */
enum { LATE_NS = 5000, LATE_PART = 200 };

struct moment {
    uint64_t g, ns, before, task;
    const char *name; /* NULL: the hold ends */
};

struct gt_holdings {
    struct moment *at; /* by goroutine and time */
    size_t n;
    struct gt_memo next; /* by goroutine: index + 1 of the next moment to write */
};

static void add(struct gt_holdings *all, const struct moment *moment)
{
    *GT_ADD(all->at, all->n) = *moment;
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct gt_holdings *all = arg;
    uint64_t g = hold->thread->g, task = FIRST_TASK + all->n / 2;
    char *name;
    if (asprintf(&name, "hold %s", lock->name) < 0)
        name = NULL;
    uint64_t before = LATE_NS + (hold->to - hold->from) / LATE_PART;
    add(all, &(struct moment){g, hold->from, before, task, gt_need(name)});
    add(all, &(struct moment){g, hold->to, 0, task, NULL});
}

GT_ORDER(by_time, struct moment, GT_UP(g) ?: GT_UP(ns) ?: (!x->name - !y->name) ?: GT_UP(task))

struct gt_holdings *gt_holdings_read(const char *path, size_t *n)
{
    struct gt_holdings *all = gt_need(calloc(1, sizeof *all));
    struct gt_threads threads = {.arg = all, .hold = add_hold};
    struct gt_trace trace;
    gt_open_trace(&trace, path);
    gt_read_threads(&threads, &trace);
    if (all->n)
        qsort(all->at, all->n, sizeof *all->at, by_time);
    for (size_t i = all->n; i--;)
        *(uint64_t *)gt_need(gt_memo_at(&all->next, all->at[i].g)) = i + 1;
    *n = all->n / 2;
    return all;
}

void gt_holdings_tell(struct gt_holdings *all, const struct gt_happening *next, uint64_t g,
                      uint64_t ns)
{
    size_t i = gt_memo_find(&all->next, g);
    if (!i--)
        return;
    for (; i < all->n && all->at[i].g == g && all->at[i].ns - all->at[i].before <= ns; i++) {
        const struct moment *m = &all->at[i];
        struct gt_happening h = {
            .type = m->name ? GT_EV_USER_TASK_BEGIN : GT_EV_USER_TASK_END,
            .on = next->on,
            .g = g,
            .task = m->task,
            .text = m->name,
        };
        gt_tell_says(&h, m->ns < ns ? m->ns : ns);
    }
    *(uint64_t *)gt_need(gt_memo_at(&all->next, g)) = i + 1;
}
