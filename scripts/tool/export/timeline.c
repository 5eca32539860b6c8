/* See timeline.h. */
#include "timeline.h"

#include "scripts/tool/report/reading.h"

#include "encoder/read/need.h"

const char *const gt_counter_names[GT_COUNTERS] = {"threads running", "threads runnable", "heap",
                                                   "heap goal"};

static void count(struct gt_timeline *t, enum gt_counter counter, uint64_t ns, uint64_t value)
{
    if (value == t->counted[counter])
        return;
    t->counted[counter] = value;
    t->count(t->arg, counter, ns, value);
}

static void count_state(struct gt_timeline *t, enum gt_g_state state, uint64_t ns, int change)
{
    if (state == GT_G_RUNNING)
        count(t, GT_COUNT_RUNNING, ns, t->counted[GT_COUNT_RUNNING] + (uint64_t)change);
    if (state == GT_G_RUNNABLE)
        count(t, GT_COUNT_RUNNABLE, ns, t->counted[GT_COUNT_RUNNABLE] + (uint64_t)change);
}

/* Counts the running and runnable threads anew when a thread's state changes. */
static void note_state(struct gt_timeline *t, const struct gt_thread_state *thread, uint64_t ns)
{
    uint64_t *known = gt_need(gt_memo_at(&t->states, (uintptr_t)thread));
    enum gt_g_state before = *known ? (enum gt_g_state)(*known - 1) : GT_G_NONE;
    if (before == thread->state)
        return;
    *known = (uint64_t)thread->state + 1;
    count_state(t, before, ns, -1);
    count_state(t, thread->state, ns, 1);
}

static void tell_mark(struct gt_timeline *t, enum gt_mark_kind kind, bool ends,
                      const struct gt_happening *h, const struct gt_thread_state *thread,
                      uint64_t ns)
{
    t->mark(t->arg, &(struct gt_mark){.kind = kind,
                                      .ends = ends,
                                      .thread = thread,
                                      .ns = ns,
                                      .task = h->task,
                                      .parent = h->parent,
                                      .name = h->text,
                                      .more = h->more});
}

static void tell_event(void *arg, const struct gt_happening *h,
                       const struct gt_thread_state *thread, uint64_t ns)
{
    struct gt_timeline *t = arg;
    if (thread)
        note_state(t, thread, ns);
    switch (h->type) {
    case GT_EV_HEAP_ALLOC: count(t, GT_COUNT_HEAP, ns, h->bytes); break;
    case GT_EV_HEAP_GOAL: count(t, GT_COUNT_GOAL, ns, h->bytes); break;
    case GT_EV_USER_TASK_BEGIN: tell_mark(t, GT_MARK_TASK, false, h, thread, ns); break;
    case GT_EV_USER_TASK_END: tell_mark(t, GT_MARK_TASK, true, h, thread, ns); break;
    case GT_EV_USER_REGION_BEGIN: tell_mark(t, GT_MARK_REGION, false, h, thread, ns); break;
    case GT_EV_USER_REGION_END: tell_mark(t, GT_MARK_REGION, true, h, thread, ns); break;
    case GT_EV_USER_LOG:
        if (h->task || !gt_locks_is_ours(h->text)) /* logs about locks become waits and holds */
            tell_mark(t, GT_MARK_LOG, false, h, thread, ns);
        break;
    default: break;
    }
}

static void tell_span(void *arg, const struct gt_span *span)
{
    struct gt_timeline *t = arg;
    if (span->kind != GT_RUNNING || span->ns)
        t->span(t->arg, span);
}

static void tell_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    struct gt_timeline *t = arg;
    t->hold(t->arg, lock, hold);
}

static void tell_sample(void *arg, const struct gt_thread_state *thread,
                        const struct gt_callers *stack, uint64_t ns)
{
    struct gt_timeline *t = arg;
    t->sample(t->arg, thread, stack, ns);
}

void gt_timeline_read(struct gt_timeline *timeline, struct gt_threads *threads,
                      struct gt_trace *trace)
{
    threads->span = tell_span;
    threads->hold = tell_hold;
    threads->sample = tell_sample;
    threads->event = tell_event;
    threads->arg = timeline;
    gt_read_threads(threads, trace);
}
