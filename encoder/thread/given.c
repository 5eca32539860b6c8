/* See given.h. */
#include "given.h"

#include "writer.h"

#include "encoder/base/sparse.h"

#include <string.h>

_Atomic uint32_t gt_given_count;

/*
 * A name that is odd in `version` is being written. A reader that finds the same even version
 * before and after has read one name. Threads whose numbers are PLACES apart share a place, and the
 * later name stays. Linux gives out numbers in order, so their namers are that many threads apart.
 */
enum { PLACES = 1 << 16, WORDS = GT_GIVEN_NAME / sizeof(uint64_t), TRIES = 1000 };

static struct place {
    _Atomic uint32_t version;
    _Atomic uint64_t whose; /* 0: no thread's */
    _Atomic uint64_t name[WORDS];
} places[PLACES] GT_SPARSE_LARGE;

static uint32_t process = 1; /* by forks: what a parent has left here is not ours */

static uint64_t whose(uint32_t tid)
{
    return (uint64_t)process << 32 | tid;
}

/* Makes the place tid's; 0: no thread's. false: another thread writes there, or this one did. */
static bool put(struct place *p, uint64_t owner, const uint64_t name[WORDS])
{
    uint32_t version = atomic_load_explicit(&p->version, memory_order_relaxed);
    if (version & 1 ||
        !atomic_compare_exchange_strong_explicit(&p->version, &version, version + 1,
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    atomic_thread_fence(memory_order_release); /* pairs with the fence of gt_given_take */
    atomic_store_explicit(&p->whose, owner, memory_order_relaxed);
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&p->name[i], name[i], memory_order_relaxed);
    /* release: pairs with the first load of gt_given_take */
    atomic_store_explicit(&p->version, version + 2, memory_order_release);
    return true;
}

void gt_given_name(uint32_t tid, const char *name)
{
    char text[GT_GIVEN_NAME] = {0};
    uint64_t words[WORDS];
    strncpy(text, name, sizeof text - 1);
    memcpy(words, text, sizeof words);
    bool done = false; /* a writer takes some nanoseconds, unless it lost its CPU */
    for (int tries = 0; !done && tries < TRIES; tries++)
        done = put(&places[tid % PLACES], whose(tid), words);
    if (!done)
        gt_lost();
    /* release: who sees the count finds the name. Pairs with take_name of events.c. */
    atomic_fetch_add_explicit(&gt_given_count, 1, memory_order_release);
}

bool gt_given_take(uint32_t tid, uint32_t *version, char name[GT_GIVEN_NAME])
{
    struct place *p = &places[tid % PLACES];
    uint32_t now = atomic_load_explicit(&p->version, memory_order_acquire);
    uint64_t owner = atomic_load_explicit(&p->whose, memory_order_relaxed), words[WORDS];
    for (size_t i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&p->name[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire); /* pairs with the fence of put */
    bool whole = !(now & 1) && atomic_load_explicit(&p->version, memory_order_relaxed) == now;
    if (!whole || owner != whose(tid) || now == *version)
        return false;
    *version = now;
    memcpy(name, words, sizeof words);
    return true;
}

void gt_given_forget(uint32_t tid)
{
    struct place *p = &places[tid % PLACES];
    if (atomic_load_explicit(&gt_given_count, memory_order_relaxed) &&
        atomic_load_explicit(&p->whose, memory_order_relaxed) == whose(tid))
        put(p, 0, (uint64_t[WORDS]){0});
}

void gt_given_after_fork(void)
{
    process++;
}
