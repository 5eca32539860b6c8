/* See steps.h: events by which a program describes itself, and its collections. */
#include "steps.h"

#include "joining.h"
#include "numbers.h"

#include "encoder/read/need.h"

#include <stdlib.h>

/* What the program says ------------------------------------------------------------------------ */

static void task_begin(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_rewritten_task *task = gt_need(calloc(1, sizeof *task));
    *task = (struct gt_rewritten_task){.id = gt_number_of_task(h->task),
                                       .parent = gt_number_of_task(h->parent),
                                       .name = h->text,
                                       .stack = h->stack,
                                       .open = true};
    *gt_all->last_task = task;
    gt_all->last_task = &task->next;
    *(uint64_t *)gt_need(gt_memo_at(&gt_all->task, h->task + 1)) = (uintptr_t)task;
    gt_do_task(m, task, ts);
}

static void task_end(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_rewritten_task *task = (void *)(uintptr_t)gt_memo_find(&gt_all->task, h->task + 1);
    if (task)
        task->open = false;
    if (gt_all->writes)
        gt_put(m, GT_EV_USER_TASK_END, ts,
               GT_ARGS(gt_number_of_task(h->task), gt_writing_stack(h->stack)));
}

static void region_begin(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_user_region *region = gt_need(calloc(1, sizeof *region));
    *region = (struct gt_user_region){.outer = m->g->regions,
                                      .task = gt_number_of_task(h->task),
                                      .name = h->text,
                                      .stack = h->stack};
    m->g->regions = region;
    gt_do_region(m, region, ts);
}

static void region_end(struct gt_m *m, const struct gt_happening *h, uint64_t ts)
{
    struct gt_user_region *region = m->g->regions;
    uint64_t text = region ? region->text : 0;
    if (gt_all->writes)
        gt_put(m, GT_EV_USER_REGION_END, ts,
               GT_ARGS(gt_number_of_task(h->task), gt_writing_text_again(text, h->text),
                       gt_writing_stack(h->stack)));
    if (region)
        m->g->regions = region->outer;
    free(region);
}

static void user_log(struct gt_m *m, const struct gt_happening *h, uint64_t ns)
{
    struct gt_log_line log =
        gt_retell_log(&(struct gt_log_line){h->task, h->text, h->more, h->stack});
    if (!h->task && gt_locks_is_of_wait(h->text)) {
        m->g->lock = log;
        m->g->lock_ns = ns;
    }
    gt_do_log(m, &log, gt_ts_of(ns));
    if (!h->task && gt_locks_is_waker(h->text))
        gt_join_wakes(m, h);
}

/* An event of the goroutine that runs on the thread. */
void gt_tell_says(const struct gt_happening *h, uint64_t ns)
{
    struct gt_m *m = gt_m_on(h->on);
    struct gt_g_row *g = m->g;
    if (!g)
        return;
    switch (h->type) {
    case GT_EV_USER_TASK_BEGIN: task_begin(m, h, gt_ts_of(ns)); break;
    case GT_EV_USER_TASK_END: task_end(m, h, gt_ts_of(ns)); break;
    case GT_EV_USER_REGION_BEGIN: region_begin(m, h, gt_ts_of(ns)); break;
    case GT_EV_USER_REGION_END: region_end(m, h, gt_ts_of(ns)); break;
    case GT_EV_USER_LOG: user_log(m, h, ns); break;
    default: gt_note_label(m, g, h, gt_ts_of(ns)); break;
    }
}

/* When merging, the host with most CPUs counts. */
void gt_tell_procs(const struct gt_happening *h, uint64_t ts)
{
    static uint64_t most;
    struct gt_m *m = gt_m_on(h->on);
    uint64_t procs = h->arg[0];
    if (gt_all->wanted.together && procs <= most)
        return;
    most = procs;
    if (gt_all->procs == procs)
        return;
    gt_all->procs = procs;
    gt_all->procs_due = true;
    if (gt_writes_of(m) && m->g && m->g->state == GT_G_RUNNING)
        gt_do_procs(m, ts);
}

/* The bytes to write: when merging, the sum of all traces. */
static uint64_t heap_with(int which, uint64_t bytes)
{
    static uint64_t sum[2];
    if (!gt_all->wanted.together)
        return bytes;
    sum[which] += bytes - gt_all->heap[which];
    gt_all->heap[which] = bytes;
    return sum[which];
}

void gt_tell_heap(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = gt_m_on(h->on);
    uint64_t bytes = heap_with(h->type == GT_EV_HEAP_GOAL, h->bytes);
    if (m->p)
        gt_put(m, h->type, ts, GT_ARGS(bytes));
}

void gt_heap_leave(struct gt_m *m, uint64_t ts)
{
    for (int which = 0; which < 2; which++) {
        bool had = gt_all->heap[which];
        uint64_t bytes = heap_with(which, 0);
        if (had)
            gt_put(m, which ? GT_EV_HEAP_GOAL : GT_EV_HEAP_ALLOC, ts, GT_ARGS(bytes));
    }
}

/* Collections --------------------------------------------------------------------------------- */

/* Readers know one collection at a time: while one process collects, others' are left out. */
void gt_tell_gc(const struct gt_happening *h, uint64_t ts)
{
    static const struct gt_everybody *collector;
    struct gt_m *m = gt_m_on(h->on);
    bool begins = h->type == GT_EV_GC_BEGIN;
    uint64_t stack = begins && gt_all->writes ? gt_writing_stack(h->stack) : 0;
    bool told = begins ? !collector || collector == gt_all : gt_all->collects_told;
    if (gt_all->wanted.trace->format->v1 && begins == gt_all->collecting) {
        gt_writing_mend(); /* the end of a trace is missing, and with it that of a collection */
        return;
    }
    gt_all->collecting = begins;
    if (gt_all->writes && told)
        gt_put(m, h->type, ts, GT_ARGS(gt_next_seq(m, &gt_gc_seq), stack));
    if (gt_all->wanted.together && told)
        collector = begins ? gt_all : NULL;
    gt_all->collects = begins && !gt_reads_ours(); /* ours begin and end in one generation */
    gt_all->collects_told = begins && told && gt_all->writes;
}

void gt_tell_stop_the_world(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = gt_m_on(h->on);
    if (!gt_all->writes || (gt_all->wanted.together && !gt_all->collects_told)) {
        gt_all->stopped = NULL;
        return;
    }
    if (h->type == GT_EV_STW_BEGIN)
        gt_put(gt_all->stopped = m, h->type, ts,
               GT_ARGS(gt_writing_string(h->text), gt_writing_stack(h->stack)));
    else if (gt_all->stopped)
        gt_put(m, h->type, ts, NULL);
}

/* Sweeps of a P and mark assists of a goroutine: only in traces by Go. */
void gt_tell_ranges(const struct gt_happening *h, uint64_t ts)
{
    struct gt_m *m = gt_m_on(h->on);
    bool sweeps = h->type == GT_EV_GC_SWEEP_BEGIN || h->type == GT_EV_GC_SWEEP_END;
    bool begins = h->type == GT_EV_GC_SWEEP_BEGIN || h->type == GT_EV_GC_MARK_ASSIST_BEGIN;
    uint64_t stack = gt_all->writes ? gt_writing_stack(h->stack) : 0;
    if (sweeps ? !m->p : !m->g)
        return;
    struct gt_range *range = sweeps ? &m->p->sweep : &m->g->assist;
    if (begins ? !range->open : range->told)
        gt_put(m, h->type, ts, begins ? GT_ARGS(stack) : h->arg);
    *range = (struct gt_range){begins, begins && gt_all->writes};
}

void gt_tell_active(const struct gt_happening *h)
{
    switch (h->type) {
    case GT_EV_GC_ACTIVE: gt_all->collects = true; break;
    case GT_EV_GC_SWEEP_ACTIVE: gt_p_of(h->arg[0])->sweep.open = true; break;
    default: gt_g_of(h->arg[0])->assist.open = true; break;
    }
}
