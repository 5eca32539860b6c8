/* See procs.h. */
#include "procs.h"

#include "encoder/base/sparse.h"

static struct {
    struct gt_p slot[GT_PROCS_MAX];
    _Atomic uint64_t taken[GT_PROCS_MAX / 64];
    _Atomic uint32_t ever; /* words in which one was ever taken */
    uint32_t reserved;
} procs GT_SPARSE;

static bool claim(uint32_t id)
{
    uint64_t bit = 1ull << id % 64;
    return !(atomic_fetch_or_explicit(&procs.taken[id / 64], bit, memory_order_acquire) & bit);
}

static void unclaim(uint32_t id)
{
    /* release: the next owner sees last_gen and seq. Pairs with claim. */
    atomic_fetch_and_explicit(&procs.taken[id / 64], ~(1ull << id % 64), memory_order_release);
}

/*
 * The smallest free P of the 64 from first; NULL: none. Not one that was in use in a generation
 * later than gen: what happens to it in this one would come before that.
 */
static struct gt_p *claim_from(uint32_t first, uint32_t gen)
{
    uint64_t free = ~atomic_load_explicit(&procs.taken[first / 64], memory_order_relaxed);
    for (; free; free &= free - 1) {
        uint32_t id = first + (uint32_t)__builtin_ctzll(free);
        if (!claim(id))
            continue;
        if (procs.slot[id].last_gen <= gen)
            return &procs.slot[id];
        unclaim(id);
    }
    return NULL;
}

static void note_ever(uint32_t words)
{
    uint32_t ever = atomic_load_explicit(&procs.ever, memory_order_relaxed);
    while (ever < words && !atomic_compare_exchange_weak(&procs.ever, &ever, words))
        ;
}

void gt_procs_reserve(uint32_t n)
{
    for (uint32_t id = 0; id < n && id < GT_PROCS_MAX; id++)
        claim(id);
    note_ever(n / 64 + 1);
    procs.reserved = n;
}

struct gt_p *gt_procs_take(uint32_t gen)
{
    struct gt_p *p = NULL;
    for (uint32_t first = 0; first < GT_PROCS_MAX && !p; first += 64)
        p = claim_from(first, gen);
    if (!p)
        return NULL;
    p->id = (uint32_t)(p - procs.slot);
    p->state = GT_P_IDLE;
    note_ever(p->id / 64 + 1);
    return p;
}

void gt_procs_release(struct gt_p *p, uint32_t gen, uint64_t at)
{
    p->last_gen = gen;
    p->left = at;
    unclaim(p->id);
}

void gt_procs_after_fork(void)
{
    for (uint32_t i = 0; i < procs.ever; i++) {
        for (uint32_t b = 0; b < 64; b++)
            procs.slot[i * 64 + b] = (struct gt_p){0};
        procs.taken[i] = 0;
    }
    procs.ever = 0;
    if (procs.reserved)
        gt_procs_reserve(procs.reserved);
}

void gt_procs_set_aside(struct gt_p *p)
{
    uint32_t id = (uint32_t)(p - procs.slot);
    claim(id);
    note_ever(id / 64 + 1);
}
