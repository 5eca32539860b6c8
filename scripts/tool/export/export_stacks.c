/* See export_stacks.h. */
#include "export_stacks.h"

#include "export_names.h"
#include "scripts/tool/report/kinds.h"
#include "scripts/tool/report/reading.h"

#include "encoder/base/hash.h"
#include "encoder/read/need.h"

static uint64_t number_of(const struct gt_callers *stack)
{
    return stack ? stack->number : 0;
}

static uint64_t key_of(const struct gt_stack_sum *s)
{
    uint64_t key = gt_hash_mix(0, (uint64_t)s->kind << 2 | s->holds << 1 | s->ended);
    key = gt_hash_mix(gt_hash_mix(key, number_of(s->stack)), number_of(s->waker));
    key = gt_hash_mix(gt_hash_mix(key, (uintptr_t)s->by), (uintptr_t)s->thread);
    return gt_hash_mix(gt_hash_mix(key, (uintptr_t)s->of), (uintptr_t)s->lock);
}

size_t gt_stack_sums_add(struct gt_stack_sums *sums, const struct gt_stack_sum *part)
{
    uint64_t *slot = gt_need(gt_memo_at(&sums->by_key, key_of(part)));
    if (!*slot) {
        *GT_ADD(sums->sum, sums->n) = *part;
        return *slot = sums->n;
    }
    sums->sum[*slot - 1].value += part->value;
    sums->sum[*slot - 1].count += part->count;
    return *slot;
}

/* Whether the span counts in a profile; if not, adds it to left_out. */
static bool counts(const struct gt_export *x, const struct gt_span *span)
{
    if (span->ended || x->unended)
        return true;
    x->left_out->waits++;
    x->left_out->ns += span->ns;
    return false;
}

void gt_stack_sums_add_span(struct gt_stack_sums *sums, const struct gt_span *span,
                            const struct gt_stack_sum *part)
{
    struct gt_whole *wait = span->kind == GT_SYNC ? gt_whole_of(&sums->wholes, span->thread) : NULL;
    if (wait)
        gt_whole_add(wait, span);
    if (wait && wait->counted)
        sums->sum[wait->counted - 1].count--;
    size_t counted = counts(sums->how, span) ? gt_stack_sums_add(sums, part) : 0;
    if (wait)
        wait->counted = counted;
}

static void add_span(void *arg, const struct gt_span *span)
{
    struct gt_stack_sums *sums = arg;
    const struct gt_export *how = sums->how;
    if (how->kinds & 1u << span->kind)
        gt_stack_sums_add_span(
            sums, span,
            &(struct gt_stack_sum){.stack = span->stack,
                                   .waker = how->wakers ? span->waker : NULL,
                                   .thread = how->by_thread ? gt_export_thread(span->thread) : NULL,
                                   .by =
                                       how->wakers && span->by ? gt_export_thread(span->by) : NULL,
                                   .kind = span->kind,
                                   .ended = span->ended,
                                   .value = span->ns,
                                   .count = 1});
}

static void add_sample(void *arg, const struct gt_thread_state *thread,
                       const struct gt_callers *stack, uint64_t ns)
{
    struct gt_stack_sums *sums = arg;
    (void)ns;
    gt_stack_sums_add(sums, &(struct gt_stack_sum){
                                .stack = stack,
                                .thread = sums->how->by_thread ? gt_export_thread(thread) : NULL,
                                .ended = true,
                                .value = 1,
                                .count = 1});
}

void gt_stack_sums_read(struct gt_stack_sums *sums, const struct gt_export *x,
                        struct gt_trace *trace)
{
    bool samples = x->kinds == GT_KINDS_CPU;
    struct gt_threads threads = {
        .span = samples ? NULL : add_span, .sample = samples ? add_sample : NULL, .arg = sums};
    sums->how = x;
    gt_read_threads(&threads, trace);
}

/* The frame on top of the stack of a state that is no call: that stack is of the wait before. */
static const char *remark_of(const struct gt_stack_sum *s)
{
    return s->kind == GT_SCHED ? "[runnable]" : s->kind == GT_UNSEEN ? "[unseen]" : NULL;
}

void gt_stack_sum_frames(const struct gt_stack_sum *s, bool wakers, gt_frame_fn *fn, void *arg)
{
    if (s->thread)
        fn(arg, s->thread);
    if (!s->stack || !s->stack->n)
        fn(arg, "[no stack]");
    for (uint32_t i = s->stack ? s->stack->n : 0; i-- > 0;)
        fn(arg, s->stack->frame[i].func);
    if (remark_of(s))
        fn(arg, remark_of(s));
    if (!s->ended)
        fn(arg, "[still waits when the trace ends]");
    if (!wakers || !s->ended)
        return;
    fn(arg, "--");
    for (uint32_t i = 0; s->waker && i < s->waker->n; i++)
        fn(arg, s->waker->frame[i].func);
    fn(arg, s->by ? s->by : "[no waker]");
}
