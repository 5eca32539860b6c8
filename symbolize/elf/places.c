/*
 * The places that modules have left lately. They show whether a stack of an earlier epoch still
 * means the same code, so that it needs no second entry. Any context reads, without a lock; one
 * thread at a time writes.
 */
#include "modules.h"

#include <stdatomic.h>

enum { PLACES = 64 };

static struct {
    _Atomic uint32_t begun, done; /* places written ever; the last PLACES are kept */
    struct {
        _Atomic uint64_t lo, hi, epoch; /* epoch: the first one without the module */
    } place[PLACES];
} left;

void gt_modules_left(const struct gt_module *m)
{
    uint32_t n = atomic_fetch_add_explicit(&left.begun, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* pairs with the acquire in gt_modules_same */
    atomic_store_explicit(&left.place[n % PLACES].lo, m->lo, memory_order_relaxed);
    atomic_store_explicit(&left.place[n % PLACES].hi, m->hi, memory_order_relaxed);
    atomic_store_explicit(&left.place[n % PLACES].epoch, m->unloaded, memory_order_relaxed);
    atomic_store_explicit(&left.done, n + 1, memory_order_release);
}

bool gt_modules_same(const uint64_t *pcs, uint32_t n, uint32_t one, uint32_t other)
{
    uint64_t from = one < other ? one : other, to = one < other ? other : one, epoch = to;
    uint32_t done = atomic_load_explicit(&left.done, memory_order_acquire), i = done;
    for (; epoch > from && i && done - i < PLACES; i--) {
        uint64_t lo = atomic_load_explicit(&left.place[(i - 1) % PLACES].lo, memory_order_relaxed);
        uint64_t hi = atomic_load_explicit(&left.place[(i - 1) % PLACES].hi, memory_order_relaxed);
        epoch = atomic_load_explicit(&left.place[(i - 1) % PLACES].epoch, memory_order_relaxed);
        for (uint32_t k = 0; k < n && epoch > from && epoch <= to; k++) {
            if (pcs[k] - lo <= hi - lo)
                return false;
        }
    }
    /* A write that has begun since may have overwritten a place while it was read. */
    atomic_thread_fence(memory_order_acquire);
    return (epoch <= from || !i) && atomic_load_explicit(&left.begun, memory_order_relaxed) == done;
}
