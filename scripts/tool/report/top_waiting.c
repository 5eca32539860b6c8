/* See top_waiting.h. */
#include "top_waiting.h"

#include "deadlocks.h"
#include "idle.h"
#include "places.h"
#include "reading.h"
#include "select.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <stdio.h>
#include <stdlib.h>

bool gt_is_waiting(const struct gt_thread_state *t, unsigned kinds)
{
    bool waits = t->state == GT_G_WAITING || t->state == GT_G_SYSCALL;
    return !t->ended && waits && (kinds & 1u << gt_kind_of(t));
}

uint64_t gt_waiting_ns(const struct gt_threads *threads, const struct gt_thread_state *t)
{
    return threads->trace->ns - t->since;
}

static void print_holder(const struct gt_threads *threads, const struct gt_wanted *wanted)
{
    const struct gt_thread_state *holder = gt_threads_find(threads, wanted->holder);
    bool joins = !*wanted->lock->name;
    if (!joins)
        printf(", %s", wanted->lock->name);
    if (!holder && !*wanted->who)
        return;
    printf(joins ? ", for the end of " : ", held by ");
    if (holder)
        gt_print_thread(holder);
    else
        printf("%s", wanted->who);
}

void gt_print_wait(const struct gt_threads *threads, const struct gt_thread_state *t)
{
    gt_print_place(gt_leaf_of(t->stack), gt_site_of(t->stack));
    if (t->state != GT_G_WAITING || !t->wanted.lock)
        return;
    print_holder(threads, &t->wanted);
}

static bool is_idle(const struct gt_thread_state *t)
{
    return !t->at_end && gt_is_idle_at(t->stack, gt_kind_of(t));
}

/* Who is idle comes last. */
static int by_since(const void *a, const void *b)
{
    const struct gt_thread_state *x = *(void *const *)a, *y = *(void *const *)b;
    if (is_idle(x) != is_idle(y))
        return is_idle(x) ? 1 : -1;
    if (x->since != y->since)
        return x->since < y->since ? -1 : 1;
    return x->g < y->g ? -1 : x->g > y->g;
}

void gt_print_waiting(const struct gt_threads *threads, unsigned kinds, size_t most)
{
    const struct gt_thread_state **rows = gt_need(calloc(threads->n + 1, sizeof *rows));
    size_t n = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (gt_is_waiting(t, kinds) && gt_select_waiting(t))
            rows[n++] = t;
    }
    qsort(rows, n, sizeof *rows, by_since);
    gt_print_deadlocks(threads);
    if (n)
        puts("\nStill waiting when the trace ends:");
    for (size_t i = 0; i < n && i < most; i++) {
        printf("%10s  %-8s thread ", gt_duration(gt_waiting_ns(threads, rows[i])),
               gt_kind_names[gt_kind_of(rows[i])]);
        gt_print_thread(rows[i]);
        printf(": ");
        gt_print_wait(threads, rows[i]);
        puts(is_idle(rows[i]) ? " (idle)" : "");
    }
    if (n > most)
        printf("%10s  %zu more\n", "", n - most);
    if (n)
        puts("");
    free(rows);
}
