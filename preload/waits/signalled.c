/* See signalled.h. */
#include "signalled.h"

#include "encoder/base/debug.h"
#include "encoder/base/sparse.h"
#include "encoder/base/strbuf.h"
#include "encoder/format/lock_texts.h"
#include "preload/process/process_names.h"
#include "preload/shared/leaves.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

/*
 * An entry for each variable and place. A thread claims an entry by storing the variable, and then
 * fills in the rest. Meanwhile other threads take the entry for another place's.
 */
enum { ENTRIES = 4096, PROBES = 16 };
static struct entry {
    _Atomic(const void *) cond;
    _Atomic(const void *) pc; /* NULL: being filled in */
    uint32_t hook, epoch;
    _Atomic uint64_t signals, vain;
    uint64_t told_signals, told_vain; /* what the drain side has told */
} entries[ENTRIES] GT_SPARSE;

static _Atomic bool used;       /* there are entries; else their memory stays untouched */
static _Atomic uint64_t untold; /* signals for which there was no entry */
static uint64_t told_untold;

void gt_signalled_expect(const void *cond)
{
    if (!gt_signalled_is_expected(cond))
        atomic_fetch_or(&gt_registry_count[gt_registry_slot(cond)], GT_REGISTRY_COND);
}

static bool claim(struct entry *e, uint32_t hook, const void *cond, const void *pc)
{
    const void *none = NULL;
    if (!atomic_compare_exchange_strong(&e->cond, &none, cond))
        return false;
    atomic_store_explicit(&used, true, memory_order_relaxed);
    e->hook = hook;
    e->epoch = (uint32_t)gt_modules_epoch();
    atomic_store_explicit(&e->pc, pc, memory_order_release); /* pairs with acquire loads of it */
    return true;
}

/*
 * Finds or claims an entry. After a library was unloaded, another one may have its addresses: a new
 * epoch means another entry.
 */
static struct entry *find(uint32_t hook, const void *cond, const void *pc)
{
    uint32_t epoch = (uint32_t)gt_modules_epoch();
    uint64_t key = (uintptr_t)cond ^ (uintptr_t)pc << 20 ^ (uint64_t)epoch << 40;
    uint64_t hash = key * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
    for (uint32_t i = 0; i < PROBES; i++) {
        struct entry *e = &entries[((hash >> 52) + i) % ENTRIES];
        bool same = atomic_load_explicit(&e->cond, memory_order_relaxed) == cond &&
                    atomic_load_explicit(&e->pc, memory_order_acquire) == pc && e->epoch == epoch;
        if (same || claim(e, hook, cond, pc))
            return e;
    }
    return NULL;
}

void gt_signalled_count_slow(uint32_t hook, const void *cond, const void *pc, uint32_t reached)
{
    if (!gt_recording() || gt_muted())
        return;
    struct entry *e = find(hook, cond, pc);
    atomic_fetch_add_explicit(e ? &e->signals : &untold, 1, memory_order_relaxed);
    if (e && !reached)
        atomic_fetch_add_explicit(&e->vain, 1, memory_order_relaxed);
}

void gt_signalled_reset(void)
{
    if (!atomic_load(&used))
        return;
    for (struct entry *e = entries; e < entries + ENTRIES; e++) {
        if (!atomic_load_explicit(&e->pc, memory_order_relaxed))
            continue;
        atomic_store(&e->pc, NULL);
        atomic_store(&e->signals, 0);
        atomic_store(&e->vain, 0);
        e->told_signals = e->told_vain = 0;
        atomic_store(&e->cond, NULL);
    }
    atomic_store(&untold, 0);
}

void gt_signalled_forget_told(void)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!atomic_load(&used))
        return;
    for (struct entry *e = entries; e < entries + ENTRIES; e++) {
        atomic_fetch_sub(&e->signals, e->told_signals);
        atomic_fetch_sub(&e->vain, e->told_vain);
        e->told_signals = e->told_vain = 0;
    }
    atomic_fetch_sub(&untold, told_untold);
    told_untold = 0;
}

/* "12 3 pthread_cond_signal put (queue.c:12), not_empty" */
static void describe(struct gt_strbuf *t, struct entry *e)
{
    uint64_t cond = (uintptr_t)atomic_load(&e->cond), pc = (uintptr_t)atomic_load(&e->pc);
    gt_strbuf_add(t, GT_SIGNALS);
    gt_strbuf_decimal(t, e->told_signals = atomic_load(&e->signals));
    gt_strbuf_add(t, " ");
    gt_strbuf_decimal(t, e->told_vain = atomic_load(&e->vain));
    gt_strbuf_add(t, " ");
    gt_strbuf_add(t, gt_real_name(e->hook));
    gt_strbuf_add(t, " ");
    const char *name = gt_names_place(pc - 1, e->epoch);
    gt_strbuf_add(t, name ? name : "? ()");
    gt_strbuf_add(t, ", ");
    gt_strbuf_add(t, gt_names_lock(cond, e->epoch, false));
}

void gt_signalled_tell(gt_tell_fn *tell)
{
    GT_ASSERT_DRAIN_SIDE();
    char text[GT_STRING_MAX];
    if (!atomic_load(&used))
        return;
    for (struct entry *e = entries; e < entries + ENTRIES; e++) {
        if (!atomic_load_explicit(&e->pc, memory_order_acquire) || !atomic_load(&e->signals))
            continue;
        struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
        describe(&t, e);
        tell(text, (uint32_t)(t.pos - text));
    }
    told_untold = atomic_load(&untold);
    if (told_untold) {
        struct gt_strbuf t = gt_strbuf_start(text, sizeof text);
        gt_strbuf_add(&t, GT_SIGNALS);
        gt_strbuf_decimal(&t, told_untold);
        gt_strbuf_add(&t, " 0 pthread_cond_signal ? (), (more variables and places than are kept)");
        tell(text, (uint32_t)(t.pos - text));
    }
}
