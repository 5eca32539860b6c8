/* See idle.h. */
#include "idle.h"

#include "call_places.h"
#include "frame_code.h"
#include "idle_private.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"

#include <stdlib.h>
#include <string.h>

static struct gt_memo idle_ns; /* by thread: ns of each kind */

void gt_idle_option(const char *value)
{
    if (strcmp(value, "none") == 0)
        gt_idle.off = true;
    else
        gt_frames_rule(GT_FRAME_IDLE, value, "--idle");
}

/* The purpose decides; if that was not judged, the place. */
static bool is_idle(struct gt_idle_keys key)
{
    const struct gt_idle_verdict *v =
        (void *)(uintptr_t)gt_memo_find(&gt_idle.verdicts, key.purpose);
    if (!v || !(v->idle || v->not_idle))
        v = (void *)(uintptr_t)gt_memo_find(&gt_idle.verdicts, key.place);
    return v && v->idle > v->not_idle;
}

GT_ORDER_POINTERS(by_thread, struct gt_visits, GT_UP(thread->g))

/* Judges thread by thread. A purpose is idle if more waits for it are idle than not. */
void gt_idle_decide(const struct gt_trace *trace)
{
    gt_idle.trace = trace;
    size_t n = 0;
    for (const struct gt_visits *v = gt_idle.first; v; v = v->next)
        n++;
    struct gt_visits **list = gt_need(calloc(n + 1, sizeof *list));
    n = 0;
    for (struct gt_visits *v = gt_idle.first; v; v = v->next)
        list[n++] = v;
    qsort(list, n, sizeof *list, by_thread);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && list[to]->thread == list[from]->thread;)
            to++;
        gt_idle_judge_thread(list + from, to - from);
    }
    free(list);
    for (const struct gt_visits *v = gt_idle.first; v; v = v->next) {
        uint64_t *ns = gt_idle_item_of(&idle_ns, v->thread->g, GT_KINDS * sizeof *ns);
        ns[v->kind] += is_idle(v->key) ? v->ns : 0;
    }
}

bool gt_is_idle_at(const struct gt_callers *stack, enum gt_kind kind)
{
    if (gt_idle.off || kind == GT_RUNNING || kind == GT_SCHED || !stack || !stack->n)
        return false;
    return is_idle(gt_idle_keys_of(stack, kind));
}

bool gt_is_idle_at_end(const struct gt_thread_state *t)
{
    return !gt_idle_has_owner(t) && gt_is_idle_at(t->stack, gt_kind_of(t));
}

uint64_t gt_idle_ns(const struct gt_thread_state *t, enum gt_kind kind)
{
    const uint64_t *ns = (void *)(uintptr_t)gt_memo_find(&idle_ns, t->g);
    return ns ? ns[kind] : 0;
}

/* The line ------------------------------------------------------------------------------------ */

void gt_idle_sum_add(struct gt_idle_sum *sum, const struct gt_callers *stack, uint64_t count,
                     uint64_t ns)
{
    sum->count += count;
    sum->ns += ns;
    for (size_t i = 0; i < sum->places; i++) {
        const struct gt_callers *its = sum->place[i].stack;
        if (gt_leaf_of(its) == gt_leaf_of(stack) && gt_site_of(its) == gt_site_of(stack)) {
            sum->place[i].ns += ns;
            return;
        }
    }
    *GT_ADD(sum->place, sum->places) = (struct gt_idle_place){stack, ns};
}

void gt_idle_sum_trace(struct gt_idle_sum *sum, bool (*of)(const struct gt_thread_state *t))
{
    for (const struct gt_visits *v = gt_idle.first; v; v = v->next) {
        if (v->waits && is_idle(v->key) && of(v->thread))
            gt_idle_sum_add(sum, v->stack, v->waits, v->ns);
    }
}
