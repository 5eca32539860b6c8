/* See top_waiting.h. */
#include "top_waiting.h"

#include "deadlocks.h"
#include "idle.h"
#include "select.h"
#include "table.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>

static bool is_waiting(const struct gt_thread_state *t, unsigned kinds)
{
    bool waits = t->state == GT_G_WAITING || t->state == GT_G_SYSCALL;
    return !t->ended && waits && (kinds & 1u << gt_kind_of(t));
}

/* Prints what the thread waits for. A joined thread is no lock: it has no lock's name. */
static void print_wanted(const struct gt_threads *threads, const struct gt_wanted *wanted)
{
    static const struct gt_lock_state none = {.name = ""};
    const struct gt_lock_state *lock = wanted && wanted->lock ? wanted->lock : &none;
    const struct gt_thread_state *holder =
        lock == &none ? NULL : gt_threads_find(threads, wanted->holder);
    const char *who = lock == &none || holder || !*wanted->who ? NULL : wanted->who;
    if (*lock->name)
        gt_cell_words(", ");
    gt_cell_text("lock", "", 0, *lock->name ? lock->name : NULL);
    if (holder || who)
        gt_cell_words(*lock->name ? ", held by " : ", for the end of ");
    gt_cell_thread("holder", "", holder);
    gt_cell_text("holder_is", "", 0, who);
}

void gt_print_waiter(const struct gt_threads *threads, const struct gt_thread_state *t, bool kind)
{
    gt_row_begin();
    gt_cell_ns("ns", "", 10, threads->trace->ns - t->since);
    if (kind)
        gt_cell_text("kind", "", -7, gt_kind_names[gt_kind_of(t)]);
    gt_cell_words("  thread ");
    gt_cell_thread("thread", "", t);
    gt_cell_words(": ");
    gt_cell_place("", t->stack);
    print_wanted(threads, t->state == GT_G_WAITING ? &t->wanted : NULL);
    gt_cell_truth("idle", gt_is_idle_at_end(t));
    if (gt_is_idle_at_end(t))
        gt_cell_words(" (idle)");
    gt_row_end();
}

/* Sorts by time, with idle threads last. */
GT_ORDER_POINTERS(by_since, struct gt_thread_state,
        (gt_is_idle_at_end(x) - gt_is_idle_at_end(y)) ?: GT_UP(since) ?: GT_UP(g))

void gt_print_waiting(const struct gt_threads *threads, unsigned kinds, size_t most)
{
    const struct gt_thread_state **rows = gt_need(calloc(threads->n + 1, sizeof *rows));
    size_t n = 0;
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (is_waiting(t, kinds) && gt_select_waiting(t))
            rows[n++] = t;
    }
    qsort(rows, n, sizeof *rows, by_since);
    gt_print_deadlocks(threads);
    if (n)
        gt_report_words("\nStill waiting when the trace ends:\n");
    size_t more = n > most ? n - most : 0;
    gt_table_begin("waiting");
    for (size_t i = 0; i < n - more; i++)
        gt_print_waiter(threads, rows[i], true);
    gt_table_end_cut("waiting", more);
    if (more)
        gt_report_words("%10s  %zu more\n", "", more);
    if (n)
        gt_report_words("\n");
    free(rows);
}
