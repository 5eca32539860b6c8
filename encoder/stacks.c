/* See stacks.h. */
#include "stacks.h"

#include "arena.h"

#include <string.h>

#define BUCKETS 65536u

static struct {
    _Atomic(struct gt_stack *) bucket[BUCKETS];
    _Atomic uint32_t last_id;
    struct gt_arena arena;
} table;

static struct gt_stack *find(struct gt_stack *s, const uint64_t *pcs, uint32_t n, uint32_t epoch,
                             uint64_t hash)
{
    for (; s; s = s->next) {
        if (s->hash == hash && s->n == n && s->epoch == epoch &&
            memcmp(s->pcs, pcs, n * sizeof *pcs) == 0)
            return s;
    }
    return NULL;
}

struct gt_stack *gt_stacks_get(const uint64_t *pcs, uint32_t n, uint32_t epoch)
{
    uint64_t hash = GT_STACKS_SEED;
    for (uint32_t i = n; i-- > 1;)
        hash = gt_stacks_mix(hash, pcs[i]);
    return gt_stacks_get_hashed(pcs, n, epoch, hash);
}

struct gt_stack *gt_stacks_get_hashed(const uint64_t *pcs, uint32_t n, uint32_t epoch,
                                      uint64_t hash)
{
    hash = gt_stacks_mix(gt_stacks_mix(hash, pcs[0]), (uint64_t)epoch << 32 | n);
    _Atomic(struct gt_stack *) *bucket = &table.bucket[hash >> 48];
    struct gt_stack *head = atomic_load_explicit(bucket, memory_order_acquire);
    struct gt_stack *s = find(head, pcs, n, epoch, hash);
    if (s)
        return s;
    s = gt_arena_alloc(&table.arena, sizeof *s + n * sizeof *pcs);
    if (!s)
        return NULL;
    s->hash = hash;
    s->n = n;
    s->epoch = epoch;
    memcpy(s->pcs, pcs, n * sizeof *pcs);
    s->id = atomic_fetch_add_explicit(&table.last_id, 1, memory_order_relaxed) + 1;
    s->next = head;
    /* release: pairs with the acquire loads of lookups and of gt_stacks_each. */
    while (!atomic_compare_exchange_weak_explicit(bucket, &s->next, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return s;
}

void gt_stacks_each(uint32_t gen, void (*fn)(void *arg, struct gt_stack *s), void *arg)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        struct gt_stack *s = atomic_load_explicit(&table.bucket[i], memory_order_acquire);
        for (; s; s = s->next) {
            if (atomic_load_explicit(&s->used[gen & 1], memory_order_relaxed) == gen)
                fn(arg, s);
        }
    }
}
