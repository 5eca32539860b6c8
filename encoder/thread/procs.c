/* See procs.h. */
#include "procs.h"

#include "encoder/base/sparse.h"
#include "encoder/format/format.h"

static struct gt_p slots[GT_PROCS_MAX] GT_SPARSE_LARGE;
static _Atomic uint64_t taken[GT_PROCS_MAX / 64] GT_SPARSE;
static struct {
    _Atomic uint32_t ever; /* 1 + the largest P that was ever taken */
    uint32_t reserved;
} procs;

static bool claim(uint32_t id)
{
    uint64_t bit = 1ull << id % 64;
    return !(atomic_fetch_or_explicit(&taken[id / 64], bit, memory_order_acquire) & bit);
}

static void unclaim(uint32_t id)
{
    /* release: the next owner sees last_gen and seq. Pairs with claim. */
    atomic_fetch_and_explicit(&taken[id / 64], ~(1ull << id % 64), memory_order_release);
}

/*
 * Takes the smallest free P of the 64 from `first`; NULL: none. Skips a P that was in use in a
 * generation later than gen: its events in gen would come before those.
 */
static struct gt_p *claim_from(uint32_t first, uint32_t gen)
{
    uint64_t free = ~atomic_load_explicit(&taken[first / 64], memory_order_relaxed);
    for (; free; free &= free - 1) {
        uint32_t id = first + (uint32_t)__builtin_ctzll(free);
        if (!claim(id))
            continue;
        if (slots[id].last_gen <= gen)
            return &slots[id];
        unclaim(id);
    }
    return NULL;
}

static void note_ever(uint32_t n)
{
    uint32_t ever = atomic_load_explicit(&procs.ever, memory_order_relaxed);
    while (ever < n && !atomic_compare_exchange_weak(&procs.ever, &ever, n))
        ;
}

void gt_procs_reserve(uint32_t n)
{
    for (uint32_t id = 0; id < n && id < GT_PROCS_MAX; id++)
        claim(id);
    note_ever(n < GT_PROCS_MAX ? n : GT_PROCS_MAX);
    procs.reserved = n;
}

struct gt_p *gt_procs_take(uint32_t gen)
{
    struct gt_p *p = NULL;
    for (uint32_t first = 0; first < GT_PROCS_MAX && !p; first += 64)
        p = claim_from(first, gen);
    if (!p)
        return NULL;
    p->id = (uint32_t)(p - slots);
    p->state = GT_P_IDLE;
    note_ever(p->id + 1);
    return p;
}

void gt_procs_release(struct gt_p *p, uint32_t gen, uint64_t at)
{
    p->last_gen = gen;
    p->left = at;
    unclaim(p->id);
}

/* Writes only to what was used: each page costs the child a page fault and a copy. */
void gt_procs_after_fork(void)
{
    if (!procs.ever)
        return;
    for (uint32_t id = 0; id < procs.ever; id++) {
        slots[id] = (struct gt_p){0};
        taken[id / 64] = 0;
    }
    procs.ever = 0;
    if (procs.reserved)
        gt_procs_reserve(procs.reserved);
}

void gt_procs_set_aside(struct gt_p *p)
{
    uint32_t id = (uint32_t)(p - slots);
    claim(id);
    note_ever(id + 1);
}
