/* See heap_slots.h. */
#include "heap_slots.h"

#include "encoder/base/arena.h"
#include "encoder/base/push.h"

__thread struct gt_heap_slot *gt_heap_self;
__thread uint32_t gt_heap_late;
struct gt_heap_totals gt_heap;
bool gt_heap_counting;

/* The tracer's own allocations are counted here, and forgotten. */
static struct gt_heap_slot own;

static struct {
    struct gt_freelist free;
    _Atomic(struct gt_heap_slot *) all;
    struct gt_arena arena;
} slots;

struct gt_heap_slot *gt_heap_slot_get(void)
{
    struct gt_heap_slot *s = gt_freelist_pop(&slots.free);
    if (s || !(s = gt_arena_alloc(&slots.arena, (sizeof *s + 63) & ~63ul)))
        return s;
    /* release: pairs with the acquire of gt_heap_live */
    GT_PUSH(&slots.all, s, &s->next);
    return s;
}

void gt_heap_slot_fold(struct gt_heap_slot *s)
{
    int64_t delta = atomic_load_explicit(&s->delta, memory_order_relaxed);
    atomic_store_explicit(&s->delta, 0, memory_order_relaxed);
    if (s == &own)
        return;
    atomic_fetch_add_explicit(&gt_heap.total, delta, memory_order_relaxed);
    s->folds++;
}

int64_t gt_heap_live(void)
{
    int64_t sum = atomic_load(&gt_heap.total);
    struct gt_heap_slot *s = atomic_load_explicit(&slots.all, memory_order_acquire);
    for (; s; s = s->next)
        sum += atomic_load_explicit(&s->delta, memory_order_relaxed);
    return sum;
}

void gt_heap_slot_give(struct gt_heap_slot *s)
{
    gt_heap_slot_fold(s);
    gt_freelist_push(&slots.free, &s->free);
}

bool gt_heap_slot_is_own(const struct gt_heap_slot *s)
{
    return s == &own;
}

void gt_heap_slots_after_fork(void)
{
    for (struct gt_heap_slot *s = atomic_load(&slots.all); s; s = s->next)
        s->due = 0;
}

struct gt_heap_slot *gt_heap_own_begin(void)
{
    struct gt_heap_slot *before = gt_heap_self;
    if (gt_heap_counting)
        gt_heap_self = &own;
    return before;
}

void gt_heap_own_end(struct gt_heap_slot **before)
{
    gt_heap_self = gt_heap_counting ? *before : NULL;
}
