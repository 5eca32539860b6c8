/* See deadlocks.h. */
#include "deadlocks.h"

#include "reading.h"
#include "scripts/tool/tool.h"
#include "top_waiting.h"

#include "encoder/read/need.h"

#include <stdio.h>

/* For whom it waits, if that can only end by what that one does; or NULL. */
static const struct gt_thread_state *after(const struct gt_threads *threads,
                                           const struct gt_thread_state *t)
{
    if (!t->at_end || !t->at_end->endless)
        return NULL;
    const struct gt_thread_state *holder = gt_threads_find(threads, t->wanted.holder);
    return holder && holder->at_end ? holder : NULL;
}

/* Whether it comes back to t; and t is the first of those on the way. */
static bool leads(const struct gt_threads *threads, const struct gt_thread_state *t)
{
    const struct gt_thread_state *it = t;
    for (uint64_t steps = 0; steps <= threads->n; steps++) {
        it = after(threads, it);
        if (!it || it->g < t->g)
            return false;
        if (it == t)
            return true;
    }
    return false;
}

static void print_one(const struct gt_threads *threads, const struct gt_thread_state *t)
{
    printf("%10s  thread ", gt_duration(gt_waiting_ns(threads, t)));
    gt_print_thread(t);
    printf(": ");
    gt_print_wait(threads, t);
    puts("");
}

static void print_cycle(const struct gt_threads *threads, const struct gt_thread_state *first)
{
    const struct gt_thread_state *t = first;
    puts(after(threads, first) == first
             ? "\nDEADLOCK: a thread waits for what it holds itself:"
             : "\nDEADLOCK: these threads wait for each other, and none will ever go on:");
    do {
        print_one(threads, t);
        t = after(threads, t);
    } while (t != first);
}

static bool waits_for_the_dead(const struct gt_thread_state *t)
{
    return t->at_end && t->at_end->gone && !t->at_end->timed;
}

bool gt_any_deadlock(const struct gt_threads *threads)
{
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (leads(threads, t) || waits_for_the_dead(t))
            return true;
    }
    return false;
}

void gt_print_deadlocks(const struct gt_threads *threads)
{
    for (const struct gt_thread_state *t = threads->first; t; t = t->next) {
        if (leads(threads, t))
            print_cycle(threads, t);
        if (waits_for_the_dead(t)) {
            puts("\nDEADLOCK: a thread waits for a lock whose holder has ended:");
            print_one(threads, t);
        }
    }
}
