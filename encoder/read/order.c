/* See order.h. */
#include "order.h"

#include "account_rows.h"
#include "need.h"
#include "trace.h"

#include "encoder/base/sort.h"
#include "encoder/format/setup.h"

#include <stdlib.h>
#include <string.h>

void gt_reader_keep_text(struct gt_reader *r, uint64_t id, const struct gt_bytes *text)
{
    *(uint64_t *)gt_need(gt_memo_at(&r->texts, id)) =
        (uintptr_t)gt_contents_name(&r->trace->contents, text->p, gt_bytes_left(text));
}

static void keep_remark(struct gt_trace *t, const char *text)
{
    static const char head[] = "gotrace-";
    if (strncmp(text, head, sizeof head - 1) != 0)
        return;
    uint64_t *known = gt_need(gt_memo_at(&t->remarked, (uintptr_t)text));
    if (*known)
        return;
    *GT_ADD(t->remarks, t->n_remarks) = text;
    *known = t->n_remarks;
}

void gt_reader_keep_own_text(struct gt_reader *r, uint64_t id, const struct gt_bytes *text)
{
    struct gt_trace *t = r->trace;
    struct gt_blocked_row blocked;
    struct gt_signals_row signals;
    struct gt_brief_row brief;
    gt_reader_keep_text(r, id, text);
    if (strcmp(gt_reader_text(r, id), GT_OF_GO) == 0) {
        t->of_go = true;
        return;
    }
    if (gt_bytes_left(text) > sizeof GT_OWN - 1 &&
        memcmp(text->p, GT_OWN, sizeof GT_OWN - 1) == 0) {
        *GT_ADD(t->own, t->n_own) = gt_reader_text(r, id);
    }
    if (gt_blocked_read(gt_reader_text(r, id), &blocked)) {
        blocked.since = (uint64_t)gt_reader_ns(r, blocked.since);
        *GT_ADD(t->blocked, t->n_blocked) = blocked;
    } else if (gt_signals_read(gt_reader_text(r, id), &signals)) {
        *GT_ADD(t->signals, t->n_signals) = signals;
    } else if (gt_brief_read(gt_reader_text(r, id), &brief)) {
        *GT_ADD(t->brief, t->n_brief) = brief;
    } else {
        keep_remark(t, gt_reader_text(r, id));
    }
}

void gt_reader_keep_stack(struct gt_reader *r, uint64_t id, const struct gt_where *frames,
                          uint64_t n)
{
    *(uint64_t *)gt_need(gt_memo_at(&r->stacks, id)) =
        (uintptr_t)gt_contents_stack(&r->trace->contents, frames, (uint32_t)n);
}

void gt_reader_keep_origin(struct gt_reader *r, struct gt_bytes numbers)
{
    uint64_t number[GT_ORIGIN_NUMBERS];
    for (int i = 0; i < GT_ORIGIN_NUMBERS; i++)
        number[i] = gt_get_varint(&numbers);
    if (!numbers.bad)
        memcpy(&r->trace->origin, number, sizeof number);
}

void gt_reader_keep_setup(struct gt_reader *r, const void *text, size_t size)
{
    size_t length = strnlen(text, size);
    if (length && length < GT_SETUP_MAX)
        r->trace->setup = gt_contents_text(&r->trace->contents, text, length);
}

const char *gt_reader_text(struct gt_reader *r, uint64_t id)
{
    uint64_t text = gt_memo_find(&r->texts, id);
    return text ? (const char *)(uintptr_t)text : gt_contents_text(&r->trace->contents, "", 0);
}

const struct gt_callers *gt_reader_stack(const struct gt_reader *r, uint64_t id)
{
    return id ? (const void *)(uintptr_t)gt_memo_find(&r->stacks, id) : NULL;
}

double gt_reader_ns(const struct gt_reader *r, uint64_t ts)
{
    double scale = r->trace->scale > 0 ? r->trace->scale : r->ns_per_unit;
    return ts > r->start ? (double)(ts - r->start) * scale : 0;
}

struct gt_source *gt_reader_source(struct gt_reader *r, uint64_t id)
{
    uint64_t *slot = gt_need(gt_memo_at(&r->by_id, id + 1));
    if (*slot)
        return (void *)(uintptr_t)*slot;
    struct gt_source *s = gt_need(calloc(1, sizeof *s));
    s->id = id;
    s->stream.thread = GT_NO_THREAD;
    s->stream.p = GT_NO_P;
    *GT_ADD(r->source, r->n) = s;
    *slot = (uintptr_t)s;
    return s;
}

void gt_source_append(struct gt_source *s, struct gt_piece piece)
{
    struct gt_piece *p = gt_need(malloc(sizeof *p));
    *p = piece;
    p->next = NULL;
    if (s->first)
        s->last->next = p;
    else
        s->first = p;
    s->last = p;
}

bool gt_source_next_piece(struct gt_trace *trace, struct gt_source *s)
{
    struct gt_piece *p = s->first;
    if (!p)
        return false;
    uint64_t before = trace->done;
    trace->done += (uint64_t)(p->end - p->start);
    if (trace->progress)
        trace->progress(trace, before, trace->done);
    s->bytes = (struct gt_bytes){p->start, p->end, false};
    s->ts = p->ts;
    s->seq = p->seq;
    s->first = p->next;
    free(p);
    return true;
}

/* Order -------------------------------------------------------------------------------------- */

static struct gt_pair by_key(struct gt_source *s)
{
    return (struct gt_pair){s->key, (uintptr_t)s};
}

static struct gt_source *first(const struct gt_queue *h)
{
    return (void *)(uintptr_t)h->at[0].value;
}

static bool is_possible(const struct gt_audience *audience, const struct gt_source *s)
{
    return !audience->possible || audience->possible(audience->arg, &s->next);
}

/*
 * The earliest event is not possible: finds a possible one among the next events of other streams,
 * and brings it to the top. If there is none, the trace is wrong, and the earliest event is
 * reported anyway.
 */
static __attribute__((noinline, cold)) void find_possible(struct gt_reader *r)
{
    struct gt_queue *h = &r->queue;
    size_t n = 0, all = h->n;
    struct gt_source *found = NULL, **waiting = gt_need(malloc(all * sizeof *waiting));
    while (h->n && !found) {
        struct gt_source *s = (void *)(uintptr_t)gt_queue_pop(h);
        if (is_possible(r->audience, s))
            found = s;
        else
            waiting[n++] = s;
    }
    for (size_t i = 0; i < n; i++)
        gt_queue_push(h, by_key(waiting[i]));
    if (found) {
        found->key = h->at[0].key; /* times do not go back */
        gt_queue_push(h, by_key(found));
        for (size_t i = 0; i < h->n; i++) { /* among events of equal time it must be first */
            if (h->at[i].value == (uintptr_t)found) {
                h->at[i] = h->at[0];
                h->at[0] = by_key(found);
            }
        }
    } else {
        r->trace->odd++;
    }
    free(waiting);
}

void gt_order_accounts(struct gt_reader *r, uint64_t ts)
{
    const struct gt_account_row *row;
    while ((row = gt_account_rows_next(&r->accounts, ts)))
        if (r->audience->account)
            r->audience->account(r->audience->arg, row, (uint64_t)gt_reader_ns(r, row->at),
                                 (uint64_t)((double)row->length * r->ns_per_unit));
}

/* Samples ------------------------------------------------------------------------------------- */

void gt_order_keep_sample(struct gt_reader *r, uint64_t ts, const struct gt_cpu_sample *sample)
{
    *GT_ADD(r->sample, r->n_samples) = (struct gt_timed_sample){ts, *sample};
}

GT_ORDER(by_time, struct gt_timed_sample, GT_UP(ts))

static void tell_samples(struct gt_reader *r, uint64_t until)
{
    const struct gt_audience *audience = r->audience;
    while (r->told_samples < r->n_samples && r->sample[r->told_samples].ts <= until) {
        const struct gt_timed_sample *s = &r->sample[r->told_samples++];
        if (audience->sample)
            audience->sample(audience->arg, &s->its, (uint64_t)gt_reader_ns(r, s->ts));
    }
}

void gt_order_tell_samples(struct gt_reader *r)
{
    tell_samples(r, UINT64_MAX);
    r->n_samples = r->told_samples = 0;
}

/* Step by step -------------------------------------------------------------------------------- */

void gt_order_begin(struct gt_reader *r)
{
    r->queue =
        (struct gt_queue){gt_need(realloc(r->queue.at, (r->n + 1) * sizeof *r->queue.at)), 0};
    r->ready = false;
    if (r->n_samples)
        qsort(r->sample, r->n_samples, sizeof *r->sample, by_time);
    for (size_t i = 0; i < r->n; i++) {
        if (r->next(r, r->source[i]))
            gt_queue_push(&r->queue, by_key(r->source[i]));
    }
}

bool gt_order_next(struct gt_reader *r, uint64_t *ns)
{
    if (!r->queue.n)
        return false;
    if (!r->ready && !is_possible(r->audience, first(&r->queue)))
        find_possible(r);
    r->ready = true;
    struct gt_source *s = first(&r->queue);
    s->next.own_ns = (uint64_t)gt_reader_ns(r, s->next.ts);
    *ns = s->next.own_ns > r->trace->ns ? s->next.own_ns : r->trace->ns;
    return true;
}

void gt_order_tell(struct gt_reader *r)
{
    const struct gt_audience *audience = r->audience;
    struct gt_source *s = first(&r->queue);
    if (s->next.own_ns > r->trace->ns)
        r->trace->ns = s->next.own_ns;
    if (gt_account_rows_due(&r->accounts, s->next.ts))
        gt_order_accounts(r, s->next.ts);
    if (audience->samples_in_time)
        tell_samples(r, s->next.ts);
    if (audience->tell)
        audience->tell(audience->arg, &s->next, r->trace->ns);
    r->ready = false;
    if (r->next(r, s))
        gt_queue_replace(&r->queue, 0, by_key(s));
    else
        gt_queue_pop(&r->queue);
}
