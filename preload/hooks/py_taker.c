/* See py_taker.h. */
#include "py_taker.h"

#include "encoder/base/sparse.h"

#include <stdatomic.h>

/*
 * The takers, by address. An entry is one word, so that a thread and a lock that do not belong
 * together are never read: the address without its low 16 bits, PASSED, and the thread's number. Of
 * two locks of an entry the later one is known.
 */
enum { TAKERS = 4096, PASSED = 1 << 30 };
static _Atomic uint64_t takers[TAKERS] GT_SPARSE;

static _Atomic uint64_t *taker_of(const void *sem)
{
    return &takers[(uintptr_t)sem / 16 % TAKERS];
}

static uint64_t entry_of(const void *sem, uint32_t state)
{
    return (uint64_t)((uintptr_t)sem >> 16) << 32 | state;
}

/* The part of its entry below the address; 0: the entry is another lock's. */
static uint32_t state_of(const void *sem)
{
    uint64_t entry = atomic_load_explicit(taker_of(sem), memory_order_relaxed);
    return (entry ^ entry_of(sem, 0)) >> 32 ? 0 : (uint32_t)entry;
}

/* No other thread writes meanwhile for the same lock, unless it is posted to as a signal. */
static void set_state(const void *sem, uint32_t state)
{
    atomic_store_explicit(taker_of(sem), entry_of(sem, state), memory_order_relaxed);
}

void gt_py_taker_takes(const void *sem, uint32_t tid)
{
    set_state(sem, (state_of(sem) & PASSED) | tid);
}

void gt_py_taker_posts(const void *sem, uint32_t tid)
{
    uint32_t taker = state_of(sem);
    if (taker)
        set_state(sem, taker == tid ? 0 : PASSED);
}

uint32_t gt_py_taker_of(const void *sem)
{
    uint32_t taker = state_of(sem);
    return taker & PASSED ? 0 : taker;
}

void gt_py_taker_begins(const void *sem)
{
    if (state_of(sem))
        set_state(sem, 0);
}
