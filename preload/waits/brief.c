/* See brief.h. */
#include "brief.h"

#include "shared.h"

#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/lock_texts.h"
#include "preload/process/process_names.h"
#include "preload/shared/options.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

/*
 * An entry for each mutex and thread, in a cache line of its own. A thread claims an entry by
 * storing the mutex, and fills in the rest; `thread` comes last. It keeps the entry to the end of
 * the process. Of more mutexes nothing is counted.
 */
enum { ENTRIES = 4096, PROBES = 16 };
static struct entry {
    _Alignas(64) _Atomic(const void *) mutex;
    _Atomic(const struct gt_thread *) thread; /* NULL: being filled in */
    uint32_t epoch;
    bool shared;
    struct gt_brief_counts counts;
} entries[ENTRIES] GT_SPARSE;

/* The drain side's: an entry's counts when it was told last, and those that the trace leaves out.
 */
static struct told {
    uint64_t n, units, before, units_before;
    bool done;
} told[ENTRIES] GT_SPARSE;

static _Atomic bool used; /* there are entries; else their memory stays untouched */

static bool claim(struct entry *e, const void *mutex, const struct gt_thread *t)
{
    const void *none = NULL;
    if (!atomic_compare_exchange_strong(&e->mutex, &none, mutex))
        return false;
    atomic_store_explicit(&used, true, memory_order_relaxed);
    e->shared = gt_shared_is(GT_LOCK_MUTEX, mutex);
    e->epoch = (uint32_t)gt_modules_epoch();
    atomic_store_explicit(&e->thread, t, memory_order_release); /* pairs with sum_up's acquire */
    return true;
}

struct gt_brief_counts *gt_brief_of(const void *mutex)
{
    const struct gt_thread *t = gt_self;
    if (!t || t->inside || !gt_recording() || gt_muted())
        return NULL;
    uint64_t hash = ((uintptr_t)mutex ^ (uintptr_t)t << 20) * 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct entry *e = &entries[((hash >> 52) + i) % ENTRIES];
        bool same = atomic_load_explicit(&e->mutex, memory_order_relaxed) == mutex &&
                    atomic_load_explicit(&e->thread, memory_order_relaxed) == t;
        if (same || claim(e, mutex, t))
            return &e->counts;
    }
    return NULL;
}

/* Notes what all threads have counted so far. */
static void look(void)
{
    for (uint32_t i = 0; i < ENTRIES; i++) {
        if (!atomic_load_explicit(&entries[i].thread, memory_order_relaxed))
            continue;
        told[i].n = atomic_load_explicit(&entries[i].counts.n, memory_order_relaxed);
        told[i].units = atomic_load_explicit(&entries[i].counts.units, memory_order_relaxed);
        told[i].done = false;
    }
}

void gt_brief_forget_told(void)
{
    for (uint32_t i = 0; i < ENTRIES && atomic_load(&used); i++) {
        told[i].before = told[i].n;
        told[i].units_before = told[i].units;
    }
}

void gt_brief_reset(void)
{
    if (!atomic_load(&used))
        return;
    look();
    gt_brief_forget_told();
}

/* Sums up the counts of all threads for the mutex of the entry. */
static void sum_up(uint32_t first, uint64_t *n, uint64_t *units)
{
    const struct entry *e = &entries[first];
    const void *mutex = atomic_load_explicit(&e->mutex, memory_order_relaxed);
    for (uint32_t i = first; i < ENTRIES; i++) {
        if (!atomic_load_explicit(&entries[i].thread, memory_order_acquire) ||
            atomic_load_explicit(&entries[i].mutex, memory_order_relaxed) != mutex ||
            entries[i].epoch != e->epoch)
            continue;
        *n += told[i].n - told[i].before;
        *units += told[i].units - told[i].units_before;
        told[i].done = true;
    }
}

/* "gotrace-brief 12 3400 cache_lock" */
static uint32_t describe(char text[GT_STRING_MAX], const struct entry *e, uint64_t n,
                         uint64_t units)
{
    struct gt_strbuf t = gt_strbuf_start(text, GT_STRING_MAX);
    uint64_t mutex = (uintptr_t)atomic_load_explicit(&e->mutex, memory_order_relaxed);
    gt_strbuf_add(&t, GT_BRIEF);
    gt_strbuf_decimal(&t, n);
    gt_strbuf_add(&t, " ");
    gt_strbuf_decimal(&t, (uint64_t)((double)units * 1e9 / (double)gt_clock_hz()));
    gt_strbuf_add(&t, " ");
    gt_strbuf_add(&t, gt_names_lock(mutex, e->epoch, e->shared));
    return (uint32_t)(t.pos - text);
}

void gt_brief_tell(gt_tell_fn *tell)
{
    GT_ASSERT_DRAIN_SIDE();
    char text[GT_STRING_MAX];
    if (!atomic_load(&used) || gt_options.ring_bytes)
        return; /* a flight recorder does not have all that was counted */
    look();
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint64_t n = 0, units = 0;
        if (told[i].n == told[i].before || told[i].done)
            continue;
        sum_up(i, &n, &units);
        if (n)
            tell(text, describe(text, &entries[i], n, units));
    }
}
