/* See deadlocks.h. */
#include "deadlocks.h"

#include "table.h"
#include "top_waiting.h"

/* For whom it waits, if that can only end by what that one does; or NULL. */
static const struct gt_thread_state *after(const struct gt_threads *threads,
                                           const struct gt_thread_state *t)
{
    if (!t->at_end || !t->at_end->endless)
        return NULL;
    const struct gt_thread_state *holder = gt_threads_find(threads, t->wanted.holder);
    return holder && holder->at_end ? holder : NULL;
}

/* How many threads are on the way back to t, if it is the first of them; or 0. */
static uint64_t circle_of(const struct gt_threads *threads, const struct gt_thread_state *t)
{
    const struct gt_thread_state *it = t;
    for (uint64_t steps = 1; steps <= threads->n + 1; steps++) {
        it = after(threads, it);
        if (!it || it->g < t->g)
            return 0;
        if (it == t)
            return steps;
    }
    return 0;
}

static bool waits_for_the_dead(const struct gt_thread_state *t)
{
    return t->at_end && t->at_end->gone && !t->at_end->timed;
}

bool gt_any_deadlock(const struct gt_threads *threads)
{
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (circle_of(threads, t) || waits_for_the_dead(t))
            return true;
    }
    return false;
}

/* So many threads, beginning with this one, each of which waits for the next. */
static void print_one(const struct gt_threads *threads, const struct gt_thread_state *t, uint64_t n,
                      const char *kind, const char *title)
{
    gt_report_words("\nDEADLOCK: %s:\n", title);
    gt_row_begin();
    gt_cell_text("kind", NULL, 0, kind);
    gt_table_begin("threads");
    for (uint64_t i = 0; i < n; i++, t = after(threads, t))
        gt_print_waiter(threads, t, false);
    gt_table_end();
    gt_row_end();
}

void gt_print_deadlocks(const struct gt_threads *threads)
{
    static const char itself[] = "a thread waits for what it holds itself";
    static const char others[] = "these threads wait for each other, and none will ever go on";
    gt_table_begin("deadlocks");
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        uint64_t n = circle_of(threads, t);
        if (n)
            print_one(threads, t, n, "cycle", n == 1 ? itself : others);
        if (waits_for_the_dead(t))
            print_one(threads, t, 1, "ended", "a thread waits for a lock whose holder has ended");
    }
    gt_table_end();
}
