/* See waking.h. */
#include "waking.h"

#include "channel_calls.h"

#include "encoder/base/sort.h"
#include "encoder/format/lock_texts.h"
#include "encoder/read/need.h"
#include "scripts/tool/report/reading.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Kinds of events at a lock, in the order that those of one time are taken in. */
enum what { BEGINS, BEGINS_LOCK, WAKES, WAKES_ALL, ENDS, ENDS_BY_ITSELF };

static struct {
    struct row {
        const char *lock; /* interned */
        uint64_t ns;      /* time in the merged trace */
        uint64_t g;
        uint32_t in; /* index of the trace */
        uint8_t what;
    } * row;
    size_t n;
    struct gt_contents names;
    struct gt_memo held; /* locks that a thread has held: the name, interned */
} found;

static const char *intern(const char *lock)
{
    return gt_contents_text(&found.names, lock, strlen(lock));
}

static void add(const char *lock, uint32_t in, uint64_t ns, uint64_t g, enum what what)
{
    lock = intern(lock);
    *GT_ADD(found.row, found.n) = (struct row){lock, ns, g, in, (uint8_t)what};
}

/* Reading ------------------------------------------------------------------------------------- */

struct reading {
    uint32_t in;
    uint64_t later;
    struct gt_channels channels;
};

static bool is_shared(const char *lock)
{
    return strncmp(lock, GT_SHARED, sizeof GT_SHARED - 1) == 0;
}

static bool is_of_lock(const struct gt_callers *stack)
{
    const char *call = stack && stack->n ? stack->frame[0].func : "";
    return strstr(call, "mutex") || strstr(call, "rwlock");
}

static void note_wait(void *arg, const struct gt_span *span)
{
    struct reading *r = arg;
    gt_channels_span(&r->channels, span);
    if (!span->wanted || !is_shared(span->wanted->lock->name))
        return;
    const char *lock = span->wanted->lock->name;
    uint64_t from = r->later + span->from, g = span->thread->g;
    add(lock, r->in, from, g, is_of_lock(span->stack) ? BEGINS_LOCK : BEGINS);
    add(lock, r->in, from + span->ns, g, span->ended && !span->by ? ENDS_BY_ITSELF : ENDS);
}

static void note_waker(void *arg, const struct gt_happening *h, const struct gt_thread_state *t,
                       uint64_t ns)
{
    (void)ns;
    struct reading *r = arg;
    gt_channels_event(&r->channels, h, t);
    if (h->type != GT_EV_USER_LOG || h->task || !t || !gt_locks_is_waker(h->text) ||
        !is_shared(h->more))
        return;
    bool all = strcmp(h->text, GT_WAKES_ALL_TEXT) == 0;
    add(h->more, r->in, r->later + h->own_ns, t->g, all ? WAKES_ALL : WAKES);
}

static void note_hold(void *arg, const struct gt_lock_state *lock, const struct gt_hold_state *hold)
{
    (void)arg;
    (void)hold;
    if (!is_shared(lock->name))
        return;
    uint64_t *slot = gt_need(gt_memo_at(&found.held, (uintptr_t)intern(lock->name)));
    *slot = 1;
}

static bool has_any(const struct gt_trace *t)
{
    return memmem(t->base, t->size, GT_SHARED, sizeof GT_SHARED - 1) || gt_channels_has(t);
}

/* Reads a trace once more, if it has such logs, and has the clock that the traces share. */
static void read_one(const struct gt_aligned *a, uint32_t in)
{
    struct gt_trace trace;
    struct reading reading = {in, a->later, .channels = {.in = in, .later = a->later}};
    struct gt_threads threads = {
        .span = note_wait, .event = note_waker, .hold = note_hold, .arg = &reading};
    if (a->by != GT_BY_COUNTER || !a->trace->origin.ticks || !has_any(a->trace))
        return;
    gt_open_trace(&trace, a->trace->path);
    trace.progress = NULL;
    trace.scale = a->trace->scale;
    gt_threads_read(&threads, &trace); /* merging.c reports damage */
    gt_channels_end(&reading.channels);
    gt_contents_free(&trace.contents);
    munmap((void *)(uintptr_t)trace.base, trace.size);
}

/* Pairing ------------------------------------------------------------------------------------- */

/* The open waits at the lock in work. */
static struct {
    struct open {
        const struct row *begin, *waker; /* waker: the last one since then; or NULL */
        unsigned wakers;
        bool meant; /* the last waker must have meant this wait */
    } * at;
    size_t n;
} open;

static void note_wake(const struct row *waker)
{
    for (size_t i = 0; i < open.n; i++) {
        open.at[i].waker = waker;
        open.at[i].wakers++;
        open.at[i].meant = open.n == 1 || waker->what == WAKES_ALL;
    }
}

/* A lock has one holder at a time, so the last waker has given it up to the thread that has it. */
static bool is_certain(const struct open *o, const struct row *end)
{
    bool lock =
        o->begin->what == BEGINS_LOCK || gt_memo_find(&found.held, (uintptr_t)o->begin->lock);
    bool certain = lock || (o->wakers == 1 && o->meant);
    return end->what == ENDS_BY_ITSELF && o->waker && certain &&
           end->ns - o->waker->ns <= GT_AT_ONCE_NS;
}

/* Keeps a waker; ns is a time of the waker's trace. */
static void keep(void *arg, struct gt_channel_thread waker, uint64_t ns,
                 struct gt_channel_thread woken)
{
    struct gt_waking_in *in = arg;
    struct gt_wakings *its = &in[waker.in].wakings;
    *GT_ADD(its->at, its->n) =
        (struct gt_woken){.ns = ns, .by = waker.g, .whose = in[woken.in].all, .g = woken.g};
}

static void end_wait(struct gt_waking_in *in, const struct row *end)
{
    size_t i = 0;
    while (i < open.n && (open.at[i].begin->in != end->in || open.at[i].begin->g != end->g))
        i++;
    if (i == open.n)
        return;
    const struct row *waker = open.at[i].waker;
    if (is_certain(&open.at[i], end))
        keep(in, (struct gt_channel_thread){waker->in, waker->g},
             waker->ns - in[waker->in].aligned->later, (struct gt_channel_thread){end->in, end->g});
    open.at[i] = open.at[--open.n];
}

static void happen(struct gt_waking_in *in, const struct row *row)
{
    switch ((enum what)row->what) {
    case BEGINS:
    case BEGINS_LOCK: *GT_ADD(open.at, open.n) = (struct open){.begin = row}; break;
    case WAKES:
    case WAKES_ALL: note_wake(row); break;
    default: end_wait(in, row);
    }
}

GT_ORDER(by_lock_and_time, struct row, GT_UP(lock) ?: GT_UP(ns) ?: x->what - y->what)

GT_ORDER(by_time, struct gt_woken, GT_UP(ns))

void gt_waking_find(struct gt_waking_in *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        read_one(in[i].aligned, (uint32_t)i);
    if (found.n)
        qsort(found.row, found.n, sizeof *found.row, by_lock_and_time);
    for (size_t i = 0; i < found.n; i++) {
        if (i && found.row[i].lock != found.row[i - 1].lock)
            open.n = 0;
        happen(in, &found.row[i]);
    }
    gt_channels_pair(keep, in);
    for (size_t i = 0; i < n; i++) {
        if (in[i].wakings.n)
            qsort(in[i].wakings.at, in[i].wakings.n, sizeof *in[i].wakings.at, by_time);
    }
    free(found.row);
    free(open.at);
    gt_memo_free(&found.held);
    gt_contents_free(&found.names);
}
