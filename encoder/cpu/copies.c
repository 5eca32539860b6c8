/* See copies.h. */
#include "copies.h"

#include "encoder/thread/buffers.h"

#include "encoder/base/clock.h"
#include "encoder/base/futex.h"
#include "encoder/base/urgent.h"

#include <errno.h>
#include <limits.h>

enum { COPIES_BYTES = 16 << 20 };

static gt_walk_fn *walk;
static _Atomic size_t bytes; /* of rings */

/*
 * holds counts the threads that unload code. walks counts beginnings and ends of walks, so it is
 * odd during a walk. The drain thread increments `walks`, then reads `holds`; a thread that
 * unloads code increments `holds`, then reads `walks`. So at least one of them sees the other.
 */
static _Atomic uint32_t holds, walks; /* walks: futex */

/* Numbers of the newest request to empty the rings, and of the last one served. */
static _Atomic uint32_t asked, served; /* served: futex */

void gt_copies_init(gt_walk_fn *w)
{
    walk = w;
}

bool gt_copies_are_walked(void)
{
    return walk;
}

/* The more rings there are, the smaller is the next one. */
size_t gt_copies_share(void)
{
    size_t used = atomic_load(&bytes);
    return used < COPIES_BYTES ? (COPIES_BYTES - used) / 8 : 0;
}

bool gt_copies_have_room(size_t more)
{
    return atomic_load(&bytes) + more <= COPIES_BYTES;
}

void gt_copies_count(int64_t more)
{
    atomic_fetch_add(&bytes, (size_t)more);
}

uint32_t gt_copies_walk(const struct gt_perf_sample *sample, uint64_t *pcs, uint32_t *epoch,
                        bool *cut)
{
    atomic_fetch_add(&walks, 1);
    uint32_t n = walk(sample, !atomic_load(&holds), pcs, epoch, cut);
    atomic_fetch_add(&walks, 1);
    if (atomic_load(&holds))
        gt_futex_wake(&walks, INT_MAX);
    return n;
}

bool gt_copies_are_awaited(void)
{
    return atomic_load(&asked) != atomic_load(&served);
}

uint32_t gt_copies_request(void)
{
    return atomic_load(&asked);
}

void gt_copies_serve(uint32_t request)
{
    if (atomic_exchange(&served, request) != request)
        gt_futex_wake(&served, INT_MAX);
}

/* Waits until *word has reached `value`, or for `ns`; a signal handler may end one futex wait. */
static void await(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    int64_t end = (int64_t)gt_clock_monotonic_raw() + ns, left = ns;
    for (uint32_t now; (int32_t)((now = atomic_load(word)) - value) < 0 && left > 0;
         left = end - (int64_t)gt_clock_monotonic_raw())
        gt_futex_wait(word, now, left);
}

static void flush(void)
{
    enum { FLUSH_NS = 100000000 };
    uint32_t number = atomic_fetch_add(&asked, 1) + 1;
    gt_buffers_kick();
    await(&served, number, FLUSH_NS);
}

void gt_copies_hold(void)
{
    int saved = errno;
    if (atomic_load(&bytes) && !atomic_load(&holds) && !gt_urgent())
        flush();
    atomic_fetch_add(&holds, 1);
    uint32_t now = atomic_load(&walks);
    if (now & 1) {
        gt_urgent_lend();
        await(&walks, now + 1, GT_LOCK_PATIENCE_NS);
    }
    errno = saved;
}

/* In a child that was forked between hold and go_on `holds` is 0 already. */
void gt_copies_go_on(void)
{
    uint32_t n = atomic_load(&holds);
    while (n && !atomic_compare_exchange_weak(&holds, &n, n - 1))
        ;
}

void gt_copies_after_fork(void)
{
    holds = walks = asked = served = 0;
    bytes = 0;
}
