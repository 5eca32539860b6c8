/* See top_rows.h. */
#include "top_rows.h"

#include "call_places.h"
#include "kinds.h"
#include "roles.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

/* Sums by stack ------------------------------------------------------------------------------ */

static struct gt_top_row *row_at(struct gt_top_rows *rows, uint64_t key)
{
    uint64_t *slot = gt_need(gt_memo_at(&rows->by_key, key));
    if (!*slot) {
        *GT_ADD(rows->row, rows->n) = (struct gt_top_row){0};
        *slot = rows->n;
    }
    return &rows->row[*slot - 1];
}

static void add_wait(struct gt_top *top, const struct gt_span *span, bool further)
{
    const struct gt_callers *stack = span->stack;
    uint64_t ns = top->report == GT_TOP_PREEMPTED ? span->waker_off : span->ns;
    uint64_t number = stack ? stack->number : 0;
    uint64_t g = gt_top_has_wakers(top) ? 0 : span->thread->g; /* fold joins threads */
    uint64_t waker = gt_top_has_wakers(top) && span->waker ? span->waker->number : 0;
    bool never_idle = gt_is_never_idle(span);
    struct gt_top_row *row = row_at(span->ended ? &top->over : &top->cut,
                                    (uint64_t)never_idle << 63 | (g | waker) << 35 |
                                        (uint64_t)span->kind << 32 | number);
    row->waker = span->waker;
    row->by = row->count && row->by != span->by ? NULL : span->by;
    row->ended = span->ended;
    row->never_idle = never_idle;
    row->thread = gt_top_has_wakers(top) ? NULL : span->thread;
    row->kind = span->kind;
    row->stack = stack;
    row->ns += ns;
    row->count++;
    row->further += further;
    row->longest = ns > row->longest ? ns : row->longest;
    if (top->lengths)
        gt_lengths_add(&row->lengths, ns);
}

/* Adds the thread's wait once that is over: now, or when the thread waits for something else. */
static void add_lock_wait(struct gt_top *top, const struct gt_span *span)
{
    struct gt_whole *wait = gt_whole_of(&top->wholes, span->thread);
    const struct gt_span before = wait->span;
    bool further = gt_whole_add(wait, span);
    if (gt_top_has_wakers(top))
        add_wait(top, span, further);
    else if (before.thread && !further)
        add_wait(top, &before, false);
}

bool gt_top_add_wait(struct gt_top *top, const struct gt_span *span)
{
    gt_sure_waits_add(&top->sure, span);
    if (!(top->kinds & 1u << span->kind) || (top->report == GT_TOP_PREEMPTED && !span->waker_off))
        return false;
    if (span->kind == GT_SYNC)
        add_lock_wait(top, span);
    else
        add_wait(top, span, false);
    return true;
}

static void add_last_waits(struct gt_top *top)
{
    for (size_t i = 0; i < top->wholes.n && !gt_top_has_wakers(top); i++) {
        if (top->wholes.of[i].span.thread)
            add_wait(top, &top->wholes.of[i].span, false);
    }
}

void gt_top_add_sample(struct gt_top *top, const struct gt_thread_state *thread,
                       const struct gt_callers *stack)
{
    uint64_t g = top->report == GT_TOP_BY_THREAD ? thread->g : 0;
    struct gt_top_row *row = row_at(&top->over, g << 35 | stack->number);
    row->thread = top->report == GT_TOP_BY_THREAD ? thread : NULL;
    row->stack = stack;
    row->ended = true;
    row->ns++;
    row->count++;
}

/* Places ------------------------------------------------------------------------------------- */

/* No call ends a join: the end of the joined thread does. */
bool gt_top_is_end_of_thread(const struct gt_top_row *row)
{
    return gt_role_of(row->end) == GT_ROLE_JOIN;
}

static void find_place(const struct gt_top *top, struct gt_top_row *row)
{
    row->what = gt_leaf_of(row->stack);
    row->site = top->cpu ? NULL : gt_site_of(row->stack);
    row->end = "";
    if (!gt_top_has_wakers(top) || !row->waker || !row->waker->n)
        return;
    row->end = row->waker->frame[0].func;
    row->waker_site = gt_top_is_end_of_thread(row) ? NULL : gt_site_of(row->waker);
}

/* Sorts rows by place. Names are interned, so their pointers are compared. */
GT_ORDER(by_place, struct gt_top_row,
        gt_compare_pointers(x->thread, y->thread) ?: (int)x->kind - (int)y->kind ?:
        gt_compare_pointers(x->what, y->what) ?: gt_compare_pointers(x->end, y->end) ?:
        gt_compare_sites(x->site, y->site) ?: gt_compare_sites(x->waker_site, y->waker_site))

GT_ORDER(by_time, struct gt_top_row, GT_DOWN(ns) ?: strcmp(x->what, y->what))

static void join(struct gt_top_row *to, const struct gt_top_row *from)
{
    to->ns += from->ns;
    to->count += from->count;
    to->further += from->further;
    if (from->longest > to->longest) {
        to->longest = from->longest;
        to->stack = from->stack;
    }
    to->by = to->by == from->by ? to->by : NULL;
    gt_lengths_join(&to->lengths, &from->lengths);
}

/* Joins stacks that wait at one place into one row, for each thread apart or for all of them. */
static void fold(const struct gt_top *top, struct gt_top_rows *rows, bool by_thread)
{
    size_t n = 0;
    if (!rows->n)
        return;
    for (size_t i = 0; i < rows->n; i++) {
        find_place(top, &rows->row[i]);
        rows->row[i].thread = by_thread ? rows->row[i].thread : NULL;
    }
    qsort(rows->row, rows->n, sizeof *rows->row, by_place);
    for (size_t i = 1; i < rows->n; i++) {
        if (by_place(&rows->row[n], &rows->row[i]) == 0)
            join(&rows->row[n], &rows->row[i]);
        else
            rows->row[++n] = rows->row[i];
    }
    rows->n = n + 1;
    qsort(rows->row, rows->n, sizeof *rows->row, by_time);
}

/* Moves the rows of idle waits to `idle`. */
static void set_idle_apart(struct gt_top_rows *rows, struct gt_idle_sum *idle)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct gt_top_row *row = &rows->row[i];
        if (!row->never_idle && gt_is_idle_at(row->stack, row->kind))
            gt_idle_sum_add(idle, row->stack, row->count, row->ns);
        else
            rows->row[n++] = *row;
    }
    rows->n = n;
}

/* Moves the rows of calls that computed, each of one thread at one place, to `in_kernel`. */
static void set_in_kernel_apart(struct gt_top *top)
{
    size_t n = 0;
    fold(top, &top->over, true);
    for (size_t i = 0; i < top->over.n; i++) {
        const struct gt_top_row *row = &top->over.row[i];
        if (gt_is_in_kernel(&top->sure, row->thread, row->kind, row->what, row->count, row->ns))
            gt_idle_sum_add(&top->in_kernel, row->stack, row->count, row->ns);
        else
            top->over.row[n++] = *row;
    }
    top->over.n = n;
}

static bool is_repeated(const struct gt_callers *stack, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (stack->frame[k].func == stack->frame[i].func)
            return true;
    }
    return false;
}

/* Sums up by function: each function on a stack gets the time of that stack once. */
static struct gt_top_rows cumulate(const struct gt_top_rows *rows)
{
    struct gt_top_rows functions = {0};
    for (size_t i = 0; i < rows->n; i++) {
        const struct gt_callers *stack = rows->row[i].stack;
        for (uint32_t k = 0; stack && k < stack->n; k++) {
            if (is_repeated(stack, k))
                continue;
            struct gt_top_row *row = row_at(&functions, (uintptr_t)stack->frame[k].func +
                                                            ((uint64_t)rows->row[i].kind << 56));
            row->what = stack->frame[k].func;
            row->kind = rows->row[i].kind;
            row->end = "";
            row->ended = true;
            join(row, &rows->row[i]);
        }
    }
    if (functions.n)
        qsort(functions.row, functions.n, sizeof *functions.row, by_time);
    return functions;
}

static void sum(struct gt_top_row *all, const struct gt_top_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        join(all, &rows->row[i]);
}

void gt_top_sum_up(struct gt_top *top)
{
    add_last_waits(top);
    if (!top->cpu) {
        set_idle_apart(&top->over, &top->idle);
        set_idle_apart(&top->cut, &top->idle);
    }
    if (!top->cpu && !gt_top_has_wakers(top) && top->report != GT_TOP_CUM &&
        top->kinds == GT_KINDS_USUAL)
        set_in_kernel_apart(top);
    sum(&top->all, &top->over);
    sum(&top->all, &top->cut);
    fold(top, &top->cut, top->report == GT_TOP_BY_THREAD);
    if (top->report == GT_TOP_CUM)
        top->over = cumulate(&top->over);
    else
        fold(top, &top->over, top->report == GT_TOP_BY_THREAD);
}
