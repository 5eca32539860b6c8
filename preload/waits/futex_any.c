/* See futex_any.h. */
#include "futex_any.h"

#include "wait.h"

#include "encoder/base/sparse.h"

#include <string.h>

enum { ROOM = 512 };

static struct entry {
    _Atomic(const void *) gate;  /* NULL: free */
    _Atomic(const void *) futex; /* NULL: not yet, or no more */
} table[ROOM] GT_SPARSE;

static _Atomic size_t used; /* no entry from here on was ever used */
_Atomic unsigned gt_futex_any_count;

/* The gate of the calling thread's wait; NULL: there is none. */
static __thread const void *own __attribute__((tls_model("initial-exec")));

static size_t entries(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

void gt_futex_any_add(const void *gate, const struct gt_futex *futexes, unsigned n)
{
    if (own && (uintptr_t)gate < (uintptr_t)own)
        return;
    gt_futex_any_leave();
    own = gate;
    for (size_t i = 0, k = 0; i < ROOM && k < n; i++) {
        const void *none = NULL;
        /* acquire: pairs with gt_futex_any_remove */
        if (!atomic_compare_exchange_strong_explicit(&table[i].gate, &none, gate,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        size_t so_far = entries();
        while (i >= so_far &&
               !atomic_compare_exchange_weak_explicit(&used, &so_far, i + 1, memory_order_relaxed,
                                                      memory_order_relaxed))
            ;
        atomic_fetch_add_explicit(&gt_futex_any_count, 1, memory_order_relaxed);
        const void *futex = (const void *)(uintptr_t)futexes[k++].address;
        /* release: pairs with gt_futex_any_wake, which then finds the gate */
        atomic_store_explicit(&table[i].futex, futex, memory_order_release);
    }
}

static void remove_all(const void *gate)
{
    for (size_t i = 0; i < entries(); i++) {
        if (atomic_load_explicit(&table[i].gate, memory_order_relaxed) != gate)
            continue;
        atomic_store_explicit(&table[i].futex, NULL, memory_order_relaxed);
        atomic_fetch_sub_explicit(&gt_futex_any_count, 1, memory_order_relaxed);
        /* release: pairs with gt_futex_any_add, whose futex comes after this NULL */
        atomic_store_explicit(&table[i].gate, NULL, memory_order_release);
    }
}

void gt_futex_any_remove(const void *gate)
{
    if (own == gate)
        gt_futex_any_leave();
}

void gt_futex_any_leave(void)
{
    if (own)
        remove_all(own);
    own = NULL;
}

void gt_futex_any_after_fork(void)
{
    own = NULL;
    memset(table, 0, entries() * sizeof *table);
    atomic_store(&used, 0);
    atomic_store(&gt_futex_any_count, 0);
}

void gt_futex_any_wake(const struct gt_wake *wake)
{
    struct gt_wake its = *wake;
    for (size_t i = 0; i < entries() && its.max; i++) {
        /* acquire: pairs with gt_futex_any_add */
        if (atomic_load_explicit(&table[i].futex, memory_order_acquire) != wake->addr)
            continue;
        its.addr = atomic_load_explicit(&table[i].gate, memory_order_relaxed);
        if (its.addr && gt_registry_any(its.addr))
            its.max -= gt_wake_slow(&its);
    }
}
