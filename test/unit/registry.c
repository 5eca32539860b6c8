/* The waiter registry: order, independence of addresses, and who counts as waiting again. */
#include "preload/hooks/registry.h"

#include "encoder/base/clock.h"

#include "check.h"

static int a, b;

static struct gt_waiter *next(const void *addr, uint64_t now)
{
    CHECK(gt_registry_lock(addr));
    struct gt_waiter *w = gt_registry_next(addr, UINT32_MAX, now);
    if (w)
        gt_registry_woken(w, now);
    gt_registry_unlock(addr);
    return w;
}

/* What only futexes need: bits, wakes that are final, and moving on to another address. */
static void test_futex(uint64_t t, uint64_t ms)
{
    struct gt_waiter w[4] = {0};
    for (int i = 0; i < 4; i++) {
        w[i].bits = 1u << i;
        w[i].final = true;
        gt_registry_add(&w[i], &a, t);
    }
    CHECK(gt_registry_lock(&a));
    CHECK(gt_registry_next(&a, 4, t) == &w[2]);
    CHECK(gt_registry_next(&a, 16, t) == NULL);
    CHECK_EQ(gt_registry_asleep(&a), 4);
    gt_registry_unlock(&a);
    CHECK(next(&a, t) == &w[0]);
    gt_registry_move(&a, &b, 2);
    CHECK(next(&a, t + ms) == &w[3], "final: not the first again");
    CHECK(next(&a, t + ms) == NULL);
    CHECK(gt_registry_lock(&b));
    CHECK_EQ(gt_registry_asleep(&b), 2);
    gt_registry_unlock(&b);
    CHECK(next(&b, t) == &w[1]);
    gt_registry_move(&b, &b, 2);
    CHECK(next(&b, t) == &w[2]);
    /* While somebody keeps the lock, for ever perhaps, nobody else waits for ever. */
    CHECK(gt_registry_lock(&b));
    gt_debug_abandon();
    CHECK(!gt_registry_remove(&w[1], 0));
    CHECK(!gt_registry_remove(&w[1], 1000000));
    gt_registry_unlock(&b);
    for (int i = 0; i < 4; i++)
        CHECK(gt_registry_remove(&w[i], GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&a) && !gt_registry_any(&b));
}

/* By the real clock: the only waiter, once woken, is on its way for some time. */
static void test_reaches(void)
{
    struct gt_waiter w = {0}, last = {.final = true};
    uint64_t now = gt_clock_now();
    gt_registry_add(&w, &a, now);
    CHECK(!gt_registry_all_woken(&a) && gt_registry_reaches(&a));
    now = gt_clock_now();
    CHECK(next(&a, now) == &w);
    bool reached = gt_registry_reaches(&a);
    CHECK(gt_registry_all_woken(&a));
    CHECK(!reached || gt_clock_now() - now >= gt_clock_units(50000));
    while (!gt_registry_reaches(&a))
        ;
    CHECK(gt_clock_now() - now >= gt_clock_units(50000));
    CHECK(next(&a, gt_clock_now()) == &w, "asleep again");
    CHECK(gt_registry_remove(&w, GT_LOCK_PATIENCE_NS));
    gt_registry_add(&last, &a, now);
    CHECK(next(&a, now) == &last);
    CHECK(!gt_registry_reaches(&a), "never asleep again");
    CHECK(gt_registry_remove(&last, GT_LOCK_PATIENCE_NS));
}

/* The kernel has woken the second one: the first still sleeps, and comes before the third. */
static void test_outrun(void)
{
    struct gt_waiter w[3] = {{.final = true}};
    uint64_t long_ago = 1, now = gt_clock_now();
    for (int i = 0; i < 3; i++)
        gt_registry_add(&w[i], &a, long_ago);
    CHECK(next(&a, now) == &w[0]);
    CHECK(gt_registry_remove(&w[1], GT_LOCK_PATIENCE_NS));
    CHECK(next(&a, now) == &w[0], "it was not the one");
    CHECK(next(&a, now) == &w[2]);
    CHECK(next(&a, now) == NULL);
    CHECK(gt_registry_remove(&w[0], GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&w[2], GT_LOCK_PATIENCE_NS));
    /* Who came just now has not slept, and is not mistaken for anybody. */
    gt_registry_add(&w[0], &a, long_ago);
    gt_registry_add(&w[1], &a, gt_clock_now() + gt_clock_units(1000000000));
    CHECK(next(&a, now) == &w[0]);
    CHECK(gt_registry_remove(&w[1], GT_LOCK_PATIENCE_NS));
    CHECK(next(&a, now) == NULL);
    CHECK(gt_registry_remove(&w[0], GT_LOCK_PATIENCE_NS));
}

int main(void)
{
    gt_clock_init();
    test_reaches();
    test_outrun();
    uint64_t ms = gt_clock_units(1000000), t = 1000 * ms;
    struct gt_waiter w[3] = {0}, other = {0};

    CHECK(!gt_registry_any(&a));
    gt_registry_add(&w[0], &a, t);
    gt_registry_add(&other, &b, t);
    gt_registry_add(&w[1], &a, t);
    gt_registry_add(&w[2], &a, t);
    CHECK(gt_registry_any(&a) && gt_registry_any(&b));

    CHECK(next(&a, t + 1) == &w[0], "oldest first");
    CHECK(next(&a, t + 2) == &w[1]);
    CHECK(next(&a, t + 3) == &w[2]);
    CHECK(next(&a, t + 4) == NULL, "all are waking up");

    /* A millisecond later they are still here: somebody else got the mutex each time. */
    CHECK(next(&a, t + ms) == &w[0], "first to go back to sleep");
    CHECK(gt_registry_remove(&w[1], GT_LOCK_PATIENCE_NS));
    CHECK(next(&a, t + ms + 1) == &w[2]);
    CHECK(next(&a, t + ms + 2) == NULL);

    /* A waiter of a condition variable, once woken, waits for the mutex. */
    struct gt_waiter cond = {0}, relock = {0};
    cond.relock = &relock;
    cond.mutex = &a;
    CHECK(gt_registry_remove(&w[0], GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&w[2], GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&a));
    gt_registry_add(&cond, &b, t);
    CHECK(next(&b, t) == &other);
    CHECK(next(&b, t) == &cond);
    CHECK(gt_registry_any(&a), "listed at the mutex");
    CHECK(next(&a, t + 10) == NULL, "may just get it");
    CHECK(next(&a, t + ms) == &relock, "did not get it");
    CHECK(gt_registry_remove(&cond, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&relock, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&other, GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&a) && !gt_registry_any(&b));
    test_futex(t, ms);
    return 0;
}
