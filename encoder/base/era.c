/* See era.h. */
#include "era.h"

#include "box.h"
#include "futex.h"
#include "sparse.h"

#include <string.h>

static struct gt_era first GT_SPARSE_DATA = {.number = 1, .bytes = sizeof first};

_Atomic(struct gt_era *) gt_era_newest = &first;
_Atomic bool gt_era_full;

static struct {
    size_t share; /* 0: any */
    void (*crowded)(void);
    _Atomic size_t past;       /* bytes of eras that are used up */
    _Atomic uint32_t renewals; /* futex: eras that have begun */
} eras;

void gt_era_set_share(size_t bytes, void (*crowded)(void))
{
    eras.crowded = crowded;
    eras.share = bytes;
    atomic_store(&gt_era_full, false);
}

static void count(struct gt_era *era, size_t size)
{
    size_t before = atomic_fetch_add_explicit(&era->bytes, size, memory_order_relaxed);
    size_t share = eras.share;
    if (!share || before + size < share || era != gt_era_now())
        return;
    if (before < share && eras.crowded)
        eras.crowded();
    if (before + size >= 2 * share && !atomic_load_explicit(&gt_era_full, memory_order_relaxed))
        atomic_store_explicit(&gt_era_full, true, memory_order_relaxed);
}

void *gt_era_alloc(struct gt_era *era, size_t size)
{
    count(era, size);
    return gt_arena_alloc(&era->arena, size);
}

void gt_era_count(size_t bytes)
{
    count(gt_era_now(), bytes);
}

bool gt_era_may_grow(const struct gt_era *era)
{
    size_t share = eras.share;
    return !share || atomic_load_explicit(&era->bytes, memory_order_relaxed) < 4 * share;
}

bool gt_era_is_crowded(void)
{
    size_t bytes = atomic_load_explicit(&gt_era_now()->bytes, memory_order_relaxed);
    return eras.share && bytes >= eras.share;
}

void gt_era_wait(void)
{
    int saved = errno;
    uint32_t seen = atomic_load(&eras.renewals);
    if (atomic_load(&gt_era_now()->bytes) < 2 * eras.share)
        atomic_store(&gt_era_full, false); /* it was set for an era that is over */
    else
        gt_futex_wait(&eras.renewals, seen, 10000000);
    errno = saved;
}

/* Drain side ---------------------------------------------------------------------------------- */

bool gt_era_begin(void)
{
    struct gt_era *old = gt_era_now(), *era = gt_box_alloc_table(sizeof *era);
    if (!era)
        return false;
    era->number = old->number + 1;
    era->older = old;
    era->bytes = sizeof *era;
    era->arena.boxed = true;
    /* release: pairs with gt_era_now's acquire. */
    atomic_store_explicit(&gt_era_newest, era, memory_order_release);
    gt_box_set_root(GT_BOX_ERA, era);
    atomic_store(&gt_era_full, false);
    atomic_fetch_add(&eras.renewals, 1);
    gt_futex_wake(&eras.renewals, INT_MAX);
    return true;
}

static void give_back(struct gt_era *era)
{
    gt_arena_free(&era->arena);
    if (era != &first)
        gt_pages_free(era, sizeof *era);
}

void gt_era_release(uint32_t from)
{
    size_t past = 0;
    for (struct gt_era **link = &gt_era_now()->older; *link;) {
        struct gt_era *era = *link;
        if (era->used_up && !era->pinned && era->number < from) {
            *link = era->older;
            give_back(era);
            continue;
        }
        past += era->used_up ? era->bytes : 0;
        link = &era->older;
    }
    atomic_store_explicit(&eras.past, past, memory_order_relaxed);
}

size_t gt_era_past_bytes(void)
{
    return atomic_load_explicit(&eras.past, memory_order_relaxed);
}

void gt_era_pin_all(void)
{
    for (struct gt_era *era = gt_era_now(); era; era = era->older)
        era->pinned = true;
}

/*
 * Copies an era while the parent's threads add entries. First comes what leads to an entry, then
 * `any_of` and the list of strings, then the list of chunks: a new entry must not be found without
 * being listed.
 */
static void keep(struct gt_era *copy, const struct gt_era *era)
{
    memcpy(copy, era, sizeof *era);
    atomic_thread_fence(memory_order_acquire);
    memcpy(copy->any_of, era->any_of, sizeof era->any_of);
    copy->last_string = __atomic_load_n(&era->last_string, __ATOMIC_ACQUIRE);
    copy->first_string = __atomic_load_n(&era->first_string, __ATOMIC_ACQUIRE);
    copy->arena.chunk = atomic_load(&era->arena.chunk);
}

/*
 * The parent's threads add entries meanwhile. An entry that can be found in the copy is whole: all
 * eras are copied before the memory that they refer to.
 */
void gt_era_keep_all(char *copy, const char *base)
{
    for (const struct gt_era *era = gt_era_now(); era; era = era->older) {
        if (gt_box_has(era))
            keep((struct gt_era *)(copy + ((const char *)era - base)), era);
    }
    atomic_thread_fence(memory_order_acquire);
    for (const struct gt_era *era = gt_era_now(); era; era = era->older) {
        if (gt_box_has(era))
            gt_arena_keep(&((const struct gt_era *)(copy + ((const char *)era - base)))->arena,
                          copy, base);
    }
}
