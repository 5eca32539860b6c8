/* See stack_rows.h. */
#include "stack_rows.h"

#include "scripts/tool/report/idle.h"
#include "scripts/tool/report/call_places.h"
#include "insert.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A frame that has a row already. */
struct frame {
    struct frame *same_hash;
    struct gt_where where;
    uint64_t id;
};

struct frames {
    struct gt_memo by_hash;
    uint64_t n;
};

static struct gt_sql_value text_or_null(const char *text)
{
    return gt_text(*text ? text : NULL);
}

/* Names are interned: pointers are compared. */
static bool is_same(const struct gt_where *a, const struct gt_where *b)
{
    return a->pc == b->pc && a->func == b->func && a->file == b->file && a->line == b->line;
}

static uint64_t frame_of(struct frames *frames, const struct gt_where *w)
{
    uint64_t hash = gt_hash_mix(gt_hash_mix(w->pc, (uintptr_t)w->func), (uintptr_t)w->file);
    uint64_t *slot = gt_need(gt_memo_at(&frames->by_hash, gt_hash_mix(hash, w->line)));
    for (struct frame *f = (void *)(uintptr_t)*slot; f; f = f->same_hash) {
        if (is_same(&f->where, w))
            return f->id;
    }
    struct frame *f = gt_need(malloc(sizeof *f));
    *f = (struct frame){(void *)(uintptr_t)*slot, *w, ++frames->n};
    *slot = (uintptr_t)f;
    gt_sql_add(GT_SQL_frames,
               (struct gt_sql_value[]){gt_number(f->id), text_or_null(w->func),
                                       text_or_null(w->file), gt_known(w->line), gt_known(w->pc)});
    return f->id;
}

/* Adds the kinds of idle waits there; returns whether there are any. */
static bool add_idle(const struct gt_callers *stack)
{
    bool any = false;
    for (int kind = GT_SYNC; kind < GT_KINDS; kind++) {
        if (!gt_is_idle_at(stack, (enum gt_kind)kind))
            continue;
        gt_sql_add(GT_SQL_idle_stacks,
                   (struct gt_sql_value[]){gt_number(stack->number), gt_text(gt_kind_names[kind])});
        any = true;
    }
    return any;
}

static void add_stack(struct frames *frames, const struct gt_callers *stack)
{
    static const struct gt_where none = {.func = "", .file = ""};
    const struct gt_where *site = gt_site_of(stack);
    const char *what = gt_leaf_of(stack);
    const char *place = gt_place_text(what, site); /* never freed, like the trace's contents */
    const struct gt_where *its = site ? site : &none;
    gt_sql_add(GT_SQL_stacks,
               (struct gt_sql_value[]){gt_number(stack->number), gt_text(place), gt_text(what),
                                       text_or_null(its->func), text_or_null(its->file),
                                       gt_known(its->line), gt_number(add_idle(stack))});
    for (uint32_t i = 0; i < stack->n; i++)
        gt_sql_add(GT_SQL_stack_frames,
                   (struct gt_sql_value[]){gt_number(stack->number), gt_number(i),
                                           gt_number(frame_of(frames, &stack->frame[i]))});
}

void gt_sql_add_stacks(const struct gt_contents *c)
{
    struct frames frames = {0};
    const struct gt_callers **all = gt_need(calloc(c->stack_count + 1, sizeof *all));
    for (size_t i = 0; i < c->stacks.capacity; i++) {
        const struct gt_callers *s = (void *)(uintptr_t)c->stacks.slots[i].value;
        for (; s; s = s->same_hash)
            all[s->number] = s;
    }
    for (uint32_t i = 1; i <= c->stack_count; i++)
        add_stack(&frames, all[i]);
    free(all);
}
