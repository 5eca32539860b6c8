/*
 * See gil.h. The layout is struct _gil_runtime_state of CPython's Include/internal/pycore_gil.h,
 * which has been the same from 3.7 to 3.15. Which thread a Python state belongs to is in the state,
 * at an offset that each version has changed: it is where the caller's own state has the caller.
 */
#include "gil.h"

#include "python_memory.h"
#include "python_stack.h"

#include "encoder/format/lock_texts.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct gil {
    uint64_t interval; /* of its holder, in µs, before another thread asks for it */
    uint64_t last_holder;
    int32_t locked;
    uint64_t switches;
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    pthread_cond_t switch_cond;
    pthread_mutex_t switch_mutex;
};

/* The GILs that threads have waited for. A subinterpreter may have one of its own from 3.12 on. */
enum { GILS = 16 };
static _Atomic(const struct gil *) known[GILS];

static _Atomic uint32_t thread_at; /* where a Python state has its pthread_t; 0: not known yet */

static const struct gil *of_cond(const void *cond)
{
    return (const struct gil *)((uintptr_t)cond - offsetof(struct gil, cond));
}

static bool is_known(const struct gil *gil)
{
    const struct gil *it = NULL;
    for (int i = 0; i < GILS && it != gil; i++) {
        it = atomic_load_explicit(&known[i], memory_order_relaxed);
        if (!it)
            return false;
    }
    return it == gil;
}

static bool add(const struct gil *gil)
{
    for (int i = 0; i < GILS; i++) {
        const struct gil *free = NULL;
        if (atomic_compare_exchange_strong(&known[i], &free, gil) || free == gil)
            return true;
    }
    return false;
}

static void learn_thread_at(void)
{
    enum { WORDS = 64 };
    uintptr_t state = gt_python_thread(), self = (uintptr_t)pthread_self();
    for (uint32_t i = 1; state && i < WORDS; i++) {
        uintptr_t word;
        if (gt_python_read_word(state + i * sizeof word, &word) && word == self) {
            atomic_store_explicit(&thread_at, i * (uint32_t)sizeof word, memory_order_relaxed);
            return;
        }
    }
}

static bool read_gil(const void *cond, struct gil *gil)
{
    bool can = gt_python_can_read((uintptr_t)of_cond(cond), sizeof *gil);
    if (can)
        memcpy(gil, of_cond(cond), offsetof(struct gil, cond));
    return can;
}

/* Whether Python waits there for a GIL: no other wait of its own has a timeout and this layout. */
static bool meet(const void *cond)
{
    enum { INTERVAL_MAX = 1000000000 };
    struct gil gil;
    return read_gil(cond, &gil) && gil.interval <= INTERVAL_MAX && gil.locked == 1 &&
           gil.last_holder && add(of_cond(cond));
}

enum gt_gil_wait gt_gil_waits(const void *cond, const void *mutex, const void *pc)
{
    enum { APART = offsetof(struct gil, switch_cond) - offsetof(struct gil, cond) };
    if (!atomic_load_explicit(&gt_python_runs, memory_order_acquire) ||
        (uintptr_t)mutex != (uintptr_t)cond + sizeof(pthread_cond_t) || !gt_python_is_code(pc))
        return GT_GIL_NONE;
    if (is_known(of_cond((const char *)cond - APART)))
        return GT_GIL_SWITCH;
    if (!is_known(of_cond(cond)) && !meet(cond))
        return GT_GIL_NONE;
    if (!atomic_load_explicit(&thread_at, memory_order_relaxed))
        learn_thread_at();
    return GT_GIL_TAKE;
}

bool gt_gil_is(const void *cond)
{
    return is_known(of_cond(cond));
}

bool gt_gil_is_free(const void *cond)
{
    return __atomic_load_n(&of_cond(cond)->locked, __ATOMIC_RELAXED) == 0;
}

/* The kernel is asked before memory is read: the state of a thread that has ended is freed. */
uint32_t gt_gil_owner(const void *cond)
{
    struct gil gil;
    uint32_t at = atomic_load_explicit(&thread_at, memory_order_relaxed);
    if (!at || !read_gil(cond, &gil) || gil.locked != 1)
        return 0;
    const uintptr_t *thread = (const uintptr_t *)(gil.last_holder + at);
    return gt_can_read(thread, sizeof *thread) ? gt_number_of_thread(*thread) : 0;
}

bool gt_gil_name(uint64_t address, char *name, size_t size)
{
    int i = 0;
    uint64_t at = UINT64_MAX;
    while (i < GILS && at >= sizeof(struct gil))
        at = address - (uintptr_t)atomic_load_explicit(&known[i++], memory_order_relaxed);
    bool inner = at == offsetof(struct gil, mutex) || at == offsetof(struct gil, switch_mutex);
    if (at >= sizeof(struct gil))
        return false;
    char number[16] = "";
    if (i > 1)
        snprintf(number, sizeof number, " %d", i);
    snprintf(name, size, GT_GIL "%s%s", number, inner ? " (mutex)" : "");
    return true;
}
