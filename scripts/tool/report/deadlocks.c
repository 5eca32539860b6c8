/* See deadlocks.h. */
#include "deadlocks.h"

#include "table.h"
#include "top_waiting.h"

#include "encoder/base/cycle.h"

/* The thread that this one waits for, if only that thread can end the wait; or NULL. */
static const void *after(const void *threads, const void *thread)
{
    const struct gt_thread_state *t = thread;
    if (!t->at_end || !t->at_end->endless)
        return NULL;
    const struct gt_thread_state *holder = gt_threads_find(threads, t->wanted.holder);
    return holder && holder->at_end ? holder : NULL;
}

/* The number of threads in the cycle through t, if t is its first thread; or 0. */
static uint64_t circle_of(const struct gt_threads *threads, const struct gt_thread_state *t)
{
    const struct gt_thread_state *it = t;
    uint64_t n = 0;
    if (gt_cycle_entry(after, threads, t) != t)
        return 0;
    do {
        it = after(threads, it);
        n++;
    } while (it->g > t->g);
    return it == t ? n : 0;
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

/* Prints n threads from t on, each of which waits for the next. */
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
