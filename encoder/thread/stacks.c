/* See stacks.h. */
#include "stacks.h"

#include "encoder/base/hash.h"
#include "encoder/base/push.h"

#include <string.h>

#define BUCKET_SHIFT 50 /* of hashes, to GT_ERA_STACKS buckets */
_Static_assert(GT_ERA_STACKS == 1 << (64 - BUCKET_SHIFT), "buckets");

static _Atomic uint64_t ids, lost;

bool (*gt_stacks_same_code)(const uint64_t *pcs, uint32_t n, uint32_t one, uint32_t other);

/*
 * Moves s to `epoch`, if its PCs belong to the same code there: mostly the modules that vanish are
 * not those of s. It gets the later epoch: some of its modules may not have been known earlier.
 */
static __attribute__((noinline)) bool moves_on(struct gt_stack *s, uint32_t epoch)
{
    uint32_t was = gt_stack_epoch(s);
    if (!gt_stacks_same_code || !gt_stacks_same_code(s->pcs, s->n, was, epoch))
        return false;
    if (was < epoch)
        __atomic_store_n(&s->epoch, epoch, __ATOMIC_RELAXED);
    return true;
}

/* Looks at the newest entries of these PCs: code that is replaced again and again leaves many. */
static struct gt_stack *find(struct gt_stack *s, const uint64_t *pcs, uint32_t n, uint32_t epoch,
                             uint64_t hash)
{
    enum { TIMES = 8 };
    for (int others = 0; s && others < TIMES; s = s->next) {
        if (s->hash == hash && s->n == n && memcmp(s->pcs, pcs, n * sizeof *pcs) == 0) {
            if (gt_stack_epoch(s) == epoch || (others == 0 && moves_on(s, epoch)))
                return s;
            others++;
        }
    }
    return NULL;
}

static void insert(struct gt_era *era, struct gt_stack *s)
{
    _Atomic(struct gt_stack *) *bucket = &era->stacks[s->hash >> BUCKET_SHIFT];
    s->era = era->number;
    atomic_store_explicit(&era->any_of[(s->hash >> BUCKET_SHIFT) / GT_ERA_STACKS_PART], true,
                          memory_order_relaxed);
    /* release: pairs with the acquire loads of lookups and of each_of. */
    GT_PUSH(bucket, s, &s->next);
}

struct gt_stack *gt_stacks_get(const uint64_t *pcs, uint32_t n, uint32_t epoch)
{
    uint64_t hash = GT_STACKS_SEED;
    for (uint32_t i = n; i-- > 1;)
        hash = gt_hash_mix(hash, pcs[i]);
    return gt_stacks_get_hashed(pcs, n, epoch, hash);
}

struct gt_stack *gt_stacks_get_hashed(const uint64_t *pcs, uint32_t n, uint32_t epoch,
                                      uint64_t hash)
{
    struct gt_era *era = gt_era_now();
    hash = gt_hash_mix(gt_hash_mix(hash, pcs[0]), n);
    struct gt_stack *head =
        atomic_load_explicit(&era->stacks[hash >> BUCKET_SHIFT], memory_order_acquire);
    struct gt_stack *s = find(head, pcs, n, epoch, hash);
    if (s)
        return s;
    s = gt_era_may_grow(era) ? gt_era_alloc(era, sizeof *s + n * sizeof *pcs) : NULL;
    if (!s) {
        atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
        return NULL;
    }
    s->hash = hash;
    s->n = n;
    s->epoch = epoch;
    memcpy(s->pcs, pcs, n * sizeof *pcs);
    s->id =
        (uint32_t)(atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) % GT_STACK_ID_MAX) + 1;
    insert(era, s);
    return s;
}

struct gt_stack *gt_stacks_adopt(const struct gt_stack *its)
{
    struct gt_era *era = gt_era_now();
    size_t size = sizeof *its + its->n * sizeof *its->pcs;
    struct gt_stack *s = gt_era_alloc(era, size);
    if (!s)
        return NULL;
    memcpy(s, its, size);
    s->written = 0; /* it was set for a trace of that process */
    insert(era, s);
    return s;
}

uint64_t gt_stacks_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}

/* Drain side ---------------------------------------------------------------------------------- */

/* gen 0: all stacks. */
static void each_in(struct gt_stack *s, uint32_t gen, void (*fn)(void *arg, struct gt_stack *s),
                    void *arg)
{
    for (; s; s = s->next) {
        if (!gen || atomic_load_explicit(&s->used[gen & 1], memory_order_relaxed) == gen)
            fn(arg, s);
    }
}

/* In a program that ends soon, most parts of the table were never touched. */
static void each_of(struct gt_era *era, uint32_t gen, void (*fn)(void *arg, struct gt_stack *s),
                    void *arg)
{
    enum { PART = GT_ERA_STACKS_PART };
    for (uint32_t part = 0; part < GT_ERA_STACKS / PART; part++) {
        bool any = atomic_load_explicit(&era->any_of[part], memory_order_relaxed);
        for (uint32_t i = part * PART; any && i < (part + 1) * PART; i++)
            each_in(atomic_load_explicit(&era->stacks[i], memory_order_acquire), gen, fn, arg);
    }
}

void gt_stacks_each(uint32_t gen, void (*fn)(void *arg, struct gt_stack *s), void *arg)
{
    for (struct gt_era *era = gt_era_now(); era; era = era->older) {
        if (!era->used_up)
            each_of(era, gen, fn, arg);
    }
}

void gt_stacks_each_kept(void (*fn)(void *arg, struct gt_stack *s), void *arg)
{
    for (struct gt_era *era = gt_era_now(); era; era = era->older)
        each_of(era, 0, fn, arg);
}

void gt_stacks_after_fork(void)
{
    lost = 0;
}

/* Moves the next id behind that of s. Ids begin anew after the highest: the distance counts. */
static void catch_up(void *unused, struct gt_stack *s)
{
    (void)unused;
    uint64_t ahead =
        (s->id + GT_STACK_ID_MAX - atomic_load(&ids) % GT_STACK_ID_MAX) % GT_STACK_ID_MAX;
    if (ahead < GT_STACK_ID_MAX / 2)
        atomic_fetch_add(&ids, ahead);
    s->written = 0;
}

void gt_stacks_catch_up(void)
{
    gt_stacks_each_kept(catch_up, NULL);
}
