/* See sem_lock.h. */
#include "sem_lock.h"

#include "registry.h"

#include "encoder/base/sparse.h"

#include <stdatomic.h>
#include <stddef.h>

/*
 * So often in a row a token must come back from its taker. Threads that signal each other through
 * one semaphore, with changing roles, do that by chance once or twice.
 */
enum { SURE = 4, NO_LOCK = UINT32_MAX };

static struct token {
    _Alignas(64) _Atomic(const void *) sem; /* NULL: none yet */
    _Atomic uint32_t taker;                 /* 0: no thread, or not known */
    _Atomic uint32_t returned;              /* by their takers, in a row, up to SURE; or NO_LOCK */
} tokens[GT_REGISTRY_SLOTS] GT_SPARSE;

static struct token *slot_of(const void *sem)
{
    return &tokens[gt_registry_slot(sem)];
}

/* The semaphore's record; NULL: there is none. claim: then one is made, if the slot has none. */
static struct token *token_of(const void *sem, bool claim)
{
    struct token *t = slot_of(sem);
    const void *of = atomic_load_explicit(&t->sem, memory_order_relaxed);
    if (!of && claim && atomic_compare_exchange_strong(&t->sem, &of, sem))
        of = sem;
    return of == sem ? t : NULL;
}

static bool is_lock(const struct token *t)
{
    return atomic_load_explicit(&t->returned, memory_order_relaxed) == SURE;
}

bool gt_sem_lock_taken(const void *sem, uint32_t tid)
{
    struct token *t = token_of(sem, true);
    if (!t)
        return false;
    if (atomic_exchange(&t->taker, tid))
        atomic_store(&t->returned, NO_LOCK);
    return is_lock(t);
}

bool gt_sem_lock_posted(const void *sem, uint32_t tid)
{
    struct token *t = token_of(sem, false);
    uint32_t taker = tid;
    if (!t)
        return false;
    if (atomic_compare_exchange_strong(&t->taker, &taker, 0)) {
        uint32_t n = atomic_load(&t->returned);
        if (n < SURE)
            atomic_compare_exchange_strong(&t->returned, &n, n + 1);
        return n == SURE;
    }
    if (taker)
        atomic_store(&t->returned, NO_LOCK);
    return false;
}

bool gt_sem_lock_is_none(const void *sem)
{
    const struct token *t = token_of(sem, false);
    return t && atomic_load_explicit(&t->returned, memory_order_relaxed) == NO_LOCK;
}

uint32_t gt_sem_lock_owner(const void *sem)
{
    struct token *t = token_of(sem, false);
    return t && is_lock(t) ? atomic_load(&t->taker) : 0;
}

void gt_sem_lock_cooled(const void *lock)
{
    atomic_store(&slot_of(lock)->taker, 0);
}

void gt_sem_lock_all_cooled(void)
{
    for (struct token *t = tokens; t < tokens + GT_REGISTRY_SLOTS; t++) {
        if (atomic_load_explicit(&t->sem, memory_order_relaxed))
            atomic_store(&t->taker, 0);
    }
}

void gt_sem_lock_begins(const void *sem, unsigned tokens_now)
{
    struct token *t = token_of(sem, tokens_now != 1);
    if (!t)
        return;
    atomic_store(&t->taker, 0);
    atomic_store(&t->returned, tokens_now == 1 ? 0 : NO_LOCK);
    if (tokens_now == 1)
        atomic_store(&t->sem, NULL);
}
