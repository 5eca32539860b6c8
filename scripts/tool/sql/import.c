/* See import.h. */
#include "import.h"

#include "insert.h"
#include "stack_rows.h"

#include "encoder/base/version.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/call_places.h"
#include "scripts/tool/report/frame_code.h"
#include "scripts/tool/report/idle.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/report/roles.h"
#include "scripts/tool/report/setup_facts.h"

#include <stdlib.h>
#include <string.h>

#define ROW(table, ...) gt_sql_add(GT_SQL_##table, (struct gt_sql_value[]){__VA_ARGS__})

/* A region or task that has not ended yet. */
struct open {
    const struct gt_thread_state *thread;
    uint64_t task, parent; /* parent: of a task */
    const char *name;
    const struct gt_callers *stack;
    uint64_t from;
};

/* One of the sleeps of a wait: see gt_sleeps_on. */
struct piece {
    struct gt_span span;
    struct gt_wanted wanted; /* a copy of span.wanted; lock NULL: that is NULL */
    uint64_t delay;          /* until the thread ran, or slept on */
};

/* The unfinished rows of a thread. */
struct doing {
    struct piece *piece; /* of its last wait, which may go on */
    size_t pieces;
    bool delayed; /* the delay of the last piece is known */
    const char *reason;
    struct open *region;
    size_t n;
};

struct import {
    struct gt_threads threads;
    struct gt_memo doing; /* by goroutine */
    struct gt_memo tasks; /* → struct open, or DONE */
    struct gt_memo locks; /* by pointer → id */
    uint64_t n_locks, n_waits;
};

enum { DONE = 1 }; /* no pointer */

static struct doing *doing_of(struct import *im, const struct gt_thread_state *t)
{
    uint64_t *slot = gt_need(gt_memo_at(&im->doing, t->g));
    if (!*slot) {
        struct doing *d = gt_need(calloc(1, sizeof *d));
        d->piece = gt_need(calloc(1, sizeof *d->piece)); /* zeros: it has not waited yet */
        *slot = (uintptr_t)d;
    }
    return (void *)(uintptr_t)*slot;
}

static struct gt_sql_value id_of_thread(const struct gt_thread_state *t)
{
    return gt_known(t ? t->g : 0);
}

static struct gt_sql_value id_of_stack(const struct gt_callers *stack)
{
    return gt_known(stack ? stack->number : 0);
}

static struct gt_sql_value id_of_lock(struct import *im, const struct gt_lock_state *lock)
{
    uint64_t *slot = gt_need(gt_memo_at(&im->locks, (uintptr_t)lock));
    if (!*slot)
        *slot = ++im->n_locks;
    return gt_number(*slot);
}

/* Spans -------------------------------------------------------------------------------------- */

static struct gt_sql_value id_of_holder(const struct gt_wanted *w)
{
    return gt_known(w ? w->holder : 0);
}

static struct gt_sql_value other_holder(const struct gt_wanted *w)
{
    return gt_text(w && !w->holder && *w->who ? w->who : NULL);
}

static void add_wait(struct import *im, const struct gt_span *s, const char *reason,
                     struct gt_sql_value delay, uint64_t pieces)
{
    const struct gt_wanted *w = s->wanted;
    ROW(waits, gt_number(s->thread->g), gt_text(gt_kind_names[s->kind]), gt_text(reason),
        gt_number(s->from), gt_number(s->ns), gt_number(s->ended), id_of_stack(s->stack),
        id_of_thread(s->by), id_of_stack(s->waker), delay,
        w ? id_of_lock(im, w->lock) : GT_SQL_NULL, id_of_holder(w), other_holder(w),
        gt_number(gt_is_never_idle(s)), gt_number(pieces));
    im->n_waits++;
}

static struct gt_sql_value delay_of(const struct piece *p)
{
    return p->span.ended ? gt_number(p->delay) : GT_SQL_NULL;
}

/* Adds a piece of the wait that was added last. */
static void add_piece(const struct import *im, const struct piece *p)
{
    const struct gt_span *s = &p->span;
    const struct gt_wanted *w = p->wanted.lock ? &p->wanted : NULL;
    ROW(pieces, gt_number(im->n_waits), gt_number(s->from), gt_number(s->ns), gt_number(s->ended),
        id_of_thread(s->by), id_of_stack(s->waker), delay_of(p), id_of_holder(w), other_holder(w));
}

/*
 * Adds the wait of the pieces. The signal, which is the first wake-up, ends a wait for a condition
 * variable. A wait is for what its first piece is for; but if it goes on when the trace ends, its
 * last piece tells that.
 */
static void finish_wait(struct import *im, struct doing *d)
{
    size_t n = d->pieces;
    if (!n)
        return;
    const struct piece *last = &d->piece[n - 1], *source = last->span.ended ? d->piece : last;
    bool signalled = n > 1 && gt_role_of(gt_leaf_of(last->span.stack)) == GT_ROLE_CONDITION;
    struct gt_span wait = last->span;
    wait.by = signalled ? source->span.by : wait.by;
    wait.waker = signalled ? source->span.waker : wait.waker;
    wait.from = d->piece[0].span.from;
    wait.wanted = source->wanted.lock ? &source->wanted : NULL;
    for (size_t i = 0; i + 1 < n; i++)
        wait.ns += d->piece[i].span.ns;
    add_wait(im, &wait, d->reason, delay_of(last), n);
    for (size_t i = 0; i < n && n > 1; i++)
        add_piece(im, &d->piece[i]);
    d->pieces = 0;
}

static void note_wait(struct import *im, struct doing *d, const struct gt_span *s)
{
    if (!gt_sleeps_on(&d->piece[0].span, s))
        finish_wait(im, d);
    *GT_ADD(d->piece, d->pieces) =
        (struct piece){*s, s->wanted ? *s->wanted : (struct gt_wanted){0}, 0};
    d->reason = s->thread->reason;
    d->delayed = false;
}

/* The thread could run. Between two pieces of a wait it runs for no time. */
static void note_delay(struct doing *d, const struct gt_span *s)
{
    if (d->pieces && !d->delayed)
        d->piece[d->pieces - 1].delay = s->ns;
    d->delayed = true;
}

static void add_span(void *arg, const struct gt_span *s)
{
    struct import *im = arg;
    struct doing *d = doing_of(im, s->thread);
    gt_idle_note(s);
    switch (s->kind) {
    case GT_RUNNING:
        d->delayed = true;
        ROW(running, gt_number(s->thread->g), gt_number(s->from), gt_number(s->ns),
            gt_number(s->ended), s->p == GT_NO_P ? GT_SQL_NULL : gt_number(s->p));
        break;
    case GT_SYSCALL:
        ROW(calls, gt_number(s->thread->g), gt_number(s->from), gt_number(s->ns),
            gt_number(s->ended), id_of_stack(s->stack));
        break;
    case GT_SCHED:
        note_delay(d, s);
        add_wait(im, s, s->thread->reason, GT_SQL_NULL, 1);
        break;
    default: note_wait(im, d, s);
    }
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    (void)arg;
    ROW(samples, gt_number(thread->g), gt_number(ns), id_of_stack(stack));
}

static void add_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    ROW(holds, id_of_lock(arg, lock), gt_number(hold->thread->g), gt_number(hold->from),
        gt_number(hold->to - hold->from), gt_text(*hold->place ? hold->place : NULL));
}

static void add_account(void *arg, const struct gt_thread_state *thread, uint64_t from, uint64_t to,
                        const struct gt_usage *used)
{
    (void)arg;
    struct gt_sql_value v[3 + GT_USED_NUMBERS] = {id_of_thread(thread), gt_number(from),
                                                  gt_number(to)};
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        v[3 + i] = used->known & gt_used_bit(i) ? gt_number(used->of[i]) : GT_SQL_NULL;
    gt_sql_add(GT_SQL_accounts, v);
}

/* What the program says of itself ------------------------------------------------------------- */

/* The length. NULL: it began before the recording, so only its end is known. */
static struct gt_sql_value length_of(const struct open *o, uint64_t end)
{
    return o->thread ? gt_number(end - o->from) : GT_SQL_NULL;
}

static struct gt_sql_value begin_of(const struct open *o)
{
    return o->thread ? gt_number(o->from) : GT_SQL_NULL;
}

/* With !ended the task goes on when the trace ends, and ender is NULL. */
static void add_task(const struct open *o, uint64_t end, bool ended,
                     const struct gt_thread_state *ender)
{
    ROW(tasks, gt_number(o->task), gt_known(o->parent), gt_text(o->name), id_of_thread(o->thread),
        begin_of(o), length_of(o, end), gt_number(ended), id_of_thread(ender),
        id_of_stack(o->stack));
}

static void add_region(const struct gt_thread_state *thread, const struct open *o, uint64_t end,
                       bool ended)
{
    ROW(regions, gt_number(thread->g), gt_known(o->task), gt_text(o->name), begin_of(o),
        length_of(o, end), gt_number(ended), id_of_stack(o->stack));
}

static struct open begun(const struct gt_happening *h, const struct gt_thread_state *t, uint64_t ns)
{
    return (struct open){t, h->task, h->parent, h->text, h->stack, ns};
}

static void begin_task(struct import *im, const struct gt_happening *h,
                       const struct gt_thread_state *t, uint64_t ns)
{
    uint64_t *slot = gt_need(gt_memo_at(&im->tasks, h->task));
    if (*slot)
        return; /* damage: ids are used once */
    struct open *task = gt_need(malloc(sizeof *task));
    *task = begun(h, t, ns);
    *slot = (uintptr_t)task;
}

static void end_task(struct import *im, const struct gt_happening *h,
                     const struct gt_thread_state *t, uint64_t ns)
{
    uint64_t *slot = gt_need(gt_memo_at(&im->tasks, h->task));
    struct open *task = *slot == DONE ? NULL : (void *)(uintptr_t)*slot;
    if (*slot != DONE)
        add_task(task ? task : &(struct open){.task = h->task}, ns, true, t);
    free(task);
    *slot = DONE;
}

static void begin_region(struct doing *d, const struct open *region)
{
    *GT_ADD(d->region, d->n) = *region;
}

/* Ends the innermost region with that task and name. Usually it is the last one. */
static void end_region(struct doing *d, const struct gt_happening *h,
                       const struct gt_thread_state *t, uint64_t ns)
{
    size_t i = d->n;
    while (i > 0 && (d->region[i - 1].task != h->task || d->region[i - 1].name != h->text))
        i--;
    struct open unknown = {.task = h->task, .name = h->text};
    add_region(t, i ? &d->region[i - 1] : &unknown, ns, true);
    if (i)
        memmove(&d->region[i - 1], &d->region[i], (d->n-- - i) * sizeof *d->region);
}

static void add_log(const struct gt_happening *h, const struct gt_thread_state *t, uint64_t ns)
{
    if (h->task || !gt_locks_is_ours(h->text))
        ROW(logs, id_of_thread(t), gt_known(h->task), gt_number(ns), gt_text(h->text),
            gt_text(h->more), id_of_stack(h->stack));
}

static void add_event(void *arg, const struct gt_happening *h, const struct gt_thread_state *t,
                      uint64_t ns)
{
    struct import *im = arg;
    struct open region;
    switch (h->type) {
    case GT_EV_HEAP_ALLOC:
    case GT_EV_HEAP_GOAL:
        ROW(heap, gt_number(ns), gt_text(h->type == GT_EV_HEAP_ALLOC ? "live" : "goal"),
            gt_number(h->bytes));
        break;
    case GT_EV_USER_TASK_BEGIN: begin_task(im, h, t, ns); break;
    case GT_EV_USER_TASK_END: end_task(im, h, t, ns); break;
    case GT_EV_USER_REGION_BEGIN:
        region = begun(h, t, ns);
        if (t)
            begin_region(doing_of(im, t), &region);
        break;
    case GT_EV_USER_REGION_END:
        if (t)
            end_region(doing_of(im, t), h, t, ns);
        break;
    case GT_EV_USER_LOG: add_log(h, t, ns); break;
    default: break;
    }
}

/* When all is read ---------------------------------------------------------------------------- */

static void add_thread(struct import *im, const struct gt_thread_state *t)
{
    const struct gt_shares s = gt_shares_within(&t->shares, t->end - t->begin);
    struct doing *d = doing_of(im, t);
    finish_wait(im, d);
    for (size_t i = 0; i < d->n; i++)
        add_region(t, &d->region[i], t->end, false);
    struct gt_sql_value row[9 + GT_KINDS] = {
        gt_number(t->g),     gt_known(t->thread),    gt_text(t->name),
        gt_text(t->routine), id_of_thread(t->maker), id_of_stack(t->its),
        gt_number(t->begin), gt_number(t->end),      gt_number(t->ended),
    };
    for (int k = 0; k < GT_KINDS; k++)
        row[9 + k] = gt_number(t->ns[k]);
    gt_sql_add(GT_SQL_threads, row);
    if (im->threads.accounts)
        ROW(shares, gt_number(t->g), gt_number(s.time), gt_number(s.cpu), gt_number(s.queue),
            gt_number(s.wait[GT_SYNC]), gt_number(s.wait[GT_NETWORK]),
            gt_number(s.wait[GT_SYSCALL]), gt_number(s.wait[GT_SLEEP]), gt_number(s.wait[GT_OTHER]),
            gt_number(gt_shares_unseen(&s)));
}

static void add_open_tasks(const struct import *im)
{
    for (size_t i = 0; i < im->tasks.capacity; i++) {
        const struct open *task = (void *)(uintptr_t)im->tasks.slots[i].value;
        if (im->tasks.slots[i].value > DONE)
            add_task(task, im->threads.trace->ns, false, NULL);
    }
}

static void add_locks(struct import *im)
{
    const struct gt_trace *trace = im->threads.trace;
    for (size_t i = 0; i < trace->n_brief; i++)
        id_of_lock(im, trace->brief[i].lock); /* it may have no other waits, and no holds */
    for (size_t i = 0; i < im->locks.capacity; i++) {
        const struct gt_lock_state *lock = (void *)(uintptr_t)im->locks.slots[i].key;
        if (im->locks.slots[i].value)
            ROW(locks, gt_number(im->locks.slots[i].value), gt_text(lock->name),
                gt_number(lock->holds), gt_number(lock->held_ns), gt_number(lock->longest_ns),
                gt_number(lock->briefs), gt_number(lock->brief_ns));
    }
}

static void add_signals(struct gt_trace *trace)
{
    for (size_t i = 0; i < trace->n_signals; i++) {
        const struct gt_signals_row *row = &trace->signals[i];
        const char *how = gt_contents_text(&trace->contents, row->how, (size_t)row->how_len);
        ROW(signals, gt_text(row->name), gt_text(how), gt_number(row->signals),
            gt_number(row->vain));
    }
}

static uint64_t ns_of(uint64_t s, uint64_t ns)
{
    return s < INT64_MAX / 1000000000 ? s * 1000000000 + ns : 0;
}

static void add_trace(const struct gt_threads *threads, const struct stat *st)
{
    const struct gt_trace *t = threads->trace;
    struct gt_setup_facts setup;
    gt_setup_read(&setup, t);
    ROW(trace, gt_text(t->path), gt_text(t->format->name), gt_number((uint64_t)st->st_size),
        gt_number(ns_of((uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec)),
        gt_number(t->ns), gt_known(ns_of(t->wall_s, t->wall_ns)), gt_number(t->events),
        gt_number(t->generations), gt_number(threads->n), gt_number(t->whole), gt_number(t->lost),
        gt_number(t->odd), gt_number(threads->accounts), gt_known(threads->cpus),
        gt_number(threads->tracer_ns), gt_known(threads->machine_cpus), gt_text(setup.cpu),
        gt_text(setup.machine), gt_text(setup.kernel), gt_text(setup.glibc), gt_text(setup.library),
        gt_text(setup.switches), gt_text(gt_version), gt_number(gt_frames_fingerprint()));
}

void gt_sql_import(struct gt_trace *trace, const struct stat *st, const char *database)
{
    struct import im = {.threads = {.span = add_span,
                                    .sample = add_sample,
                                    .event = add_event,
                                    .hold = add_hold,
                                    .account = add_account}};
    im.threads.arg = &im;
    gt_sql_begin(database);
    gt_read_threads(&im.threads, trace);
    gt_idle_decide(trace);
    for (const struct gt_thread_state *t = im.threads.first; t; t = t->next)
        add_thread(&im, t);
    add_open_tasks(&im);
    add_locks(&im);
    add_signals(trace);
    gt_sql_add_stacks(&trace->contents);
    add_trace(&im.threads, st);
    gt_sql_end();
}
