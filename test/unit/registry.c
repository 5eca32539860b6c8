/* The waiter registry: order, independence of addresses, and who counts as waiting again. */
#include "preload/registry/registry.h"

#include "encoder/base/clock.h"
#include "encoder/thread/events.h"

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
    /* While a thread keeps the lock, for ever perhaps, no other one waits for ever. */
    CHECK(gt_registry_lock(&b));
    gt_debug_abandon();
    CHECK(!gt_registry_remove(&w[1], true, 0));
    CHECK(!gt_registry_remove(&w[1], true, 1000000));
    gt_registry_unlock(&b);
    for (int i = 0; i < 4; i++)
        CHECK(gt_registry_remove(&w[i], true, GT_LOCK_PATIENCE_NS));
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
    CHECK(gt_registry_remove(&w, true, GT_LOCK_PATIENCE_NS));
    gt_registry_add(&last, &a, now);
    CHECK(next(&a, now) == &last);
    CHECK(!gt_registry_reaches(&a), "never asleep again");
    CHECK(gt_registry_remove(&last, true, GT_LOCK_PATIENCE_NS));
}

/* A new waiter of a condition variable takes the signal of the first: that one goes to the end. */
static void test_signal(void)
{
    static struct gt_writer sleeper;
    struct gt_waiter w[3] = {{.g = &sleeper.g}}, relock = {0};
    uint64_t now = gt_clock_now(), later = now + gt_clock_units(1000000000);
    gt_registry_add(&w[0], &a, now);
    CHECK(next(&a, later) == &w[0]);
    gt_registry_add(&w[1], &a, later);
    w[2].relock = &relock;
    gt_registry_add(&w[2], &a, later + 1);
    sleeper.g.state = GT_G_RUNNABLE;
    CHECK(gt_registry_remove(&w[2], true, GT_LOCK_PATIENCE_NS));
    CHECK(sleeper.g.state == GT_G_RUNNABLE, "woken before the other came");
    gt_registry_add(&w[2], &a, later);
    CHECK(gt_registry_remove(&w[2], false, GT_LOCK_PATIENCE_NS));
    CHECK(sleeper.g.state == GT_G_RUNNABLE, "the other got nothing");
    gt_registry_add(&w[2], &a, later);
    CHECK(gt_registry_remove(&w[2], true, GT_LOCK_PATIENCE_NS));
    CHECK_EQ(sleeper.g.state, GT_G_WAITING);
    CHECK(next(&a, later) == &w[1]);
    CHECK(next(&a, later) == &w[0]);
    CHECK(gt_registry_remove(&w[0], true, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&w[1], true, GT_LOCK_PATIENCE_NS));
}

/* The kernel has woken the second one: the first still sleeps, and comes before the third. */
static void test_outrun(void)
{
    static struct gt_writer sleeper;
    struct gt_waiter w[3] = {{.final = true, .g = &sleeper.g}};
    uint64_t long_ago = 1, now = gt_clock_now();
    for (int i = 0; i < 3; i++)
        gt_registry_add(&w[i], &a, long_ago);
    CHECK(next(&a, now) == &w[0]);
    sleeper.g.state = GT_G_RUNNABLE;
    CHECK(gt_registry_remove(&w[1], true, GT_LOCK_PATIENCE_NS));
    CHECK_EQ(sleeper.g.state, GT_G_WAITING);
    CHECK(next(&a, now) == &w[0], "it was not the one");
    CHECK(next(&a, now) == &w[2]);
    CHECK(next(&a, now) == NULL);
    CHECK(gt_registry_remove(&w[0], true, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&w[2], true, GT_LOCK_PATIENCE_NS));
    /* Who came just now has not slept, and is not mistaken for anybody. */
    gt_registry_add(&w[0], &a, long_ago);
    gt_registry_add(&w[1], &a, gt_clock_now() + gt_clock_units(1000000000));
    CHECK(next(&a, now) == &w[0]);
    CHECK(gt_registry_remove(&w[1], true, GT_LOCK_PATIENCE_NS));
    CHECK(next(&a, now) == NULL);
    CHECK(gt_registry_remove(&w[0], true, GT_LOCK_PATIENCE_NS));
}

/* Threads come to wait while another one holds the lock: they do not queue for it, nor get lost. */
static void test_arrival(uint64_t t)
{
    struct gt_waiter w[3] = {{.timed = true}, {.timed = true}, {.timed = true}};
    gt_registry_add(&w[0], &a, t);
    CHECK(gt_registry_lock(&a));
    CHECK_EQ(gt_registry_asleep(&a), 1);
    gt_registry_add(&w[1], &a, t);
    gt_registry_add(&w[2], &a, t);
    CHECK_EQ(gt_registry_waits(&a), 3);
    gt_registry_unlock(&a);
    CHECK(gt_registry_lock(&a));
    CHECK_EQ(gt_registry_asleep(&a), 3);
    gt_registry_unlock(&a);
    CHECK(next(&a, t) == &w[0]);
    CHECK(gt_registry_remove(&w[1], true, GT_LOCK_PATIENCE_NS));
    CHECK(next(&a, t) == &w[2]);
    CHECK(gt_registry_remove(&w[0], true, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&w[2], true, GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&a) && gt_registry_all_woken(&a));
}

/* All are woken for good: each is out of the registry, at which its thread need not look again. */
static void test_release(void)
{
    struct gt_waiter w[3] = {{.final = true}, {.final = true}, {.final = true}}, relock = {0};
    w[2].relock = &relock;
    w[2].mutex = &b;
    for (int i = 0; i < 3; i++)
        gt_registry_add(&w[i], &a, 1);
    CHECK(gt_registry_lock(&a));
    for (int i = 0; i < 3; i++) {
        CHECK(gt_registry_next(&a, UINT32_MAX, 1) == &w[i]);
        gt_registry_release(&w[i], 2);
        CHECK(!gt_registry_has(&w[i]));
    }
    CHECK_EQ(gt_registry_asleep(&a), 0);
    CHECK(gt_registry_next(&a, UINT32_MAX, 3) == NULL);
    gt_registry_unlock(&a);
    CHECK(!gt_registry_any(&a));
    CHECK(gt_registry_remove(&w[0], true, 0), "nothing is left to do");
    CHECK(gt_registry_has(&relock), "waits for its mutex");
    CHECK(gt_registry_remove(&relock, true, GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&b));
}

/* As a barrier does: each that comes asks how many sleep. Then posts for all, one by one. */
static uint64_t herd(struct gt_waiter *w, uint32_t n)
{
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(gt_registry_lock(&a));
        CHECK_EQ(gt_registry_asleep(&a), i);
        w[i] = (struct gt_waiter){.final = true};
        gt_registry_add_locked(&w[i], &a, 1);
        gt_registry_unlock(&a);
    }
    for (uint32_t i = 0; i < n; i++)
        CHECK(next(&a, 2) == &w[i]);
    for (uint32_t i = 0; i < n; i++)
        CHECK(gt_registry_remove(&w[n - 1 - i], true, GT_LOCK_PATIENCE_NS));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)(to.tv_nsec - from.tv_nsec);
}

static void test_linear(void)
{
    enum { FEW = 2000, TIMES = 16 };
    struct gt_waiter *w = calloc(FEW * TIMES, sizeof *w);
    uint64_t few = herd(w, FEW), many = herd(w, FEW * TIMES);
    CHECK(many < few * TIMES * 5, "%" PRIu64 " ns, then %" PRIu64, few, many);
    free(w);
}

int main(void)
{
    gt_clock_init();
    test_release();
    test_linear();
    test_reaches();
    test_outrun();
    test_signal();
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

    /* A millisecond later they are still here: another thread got the mutex each time. */
    CHECK(next(&a, t + ms) == &w[0], "first to go back to sleep");
    CHECK(gt_registry_remove(&w[1], true, GT_LOCK_PATIENCE_NS));
    CHECK(next(&a, t + ms + 1) == &w[2]);
    CHECK(next(&a, t + ms + 2) == NULL);

    /* A waiter of a condition variable, once woken, waits for the mutex. */
    struct gt_waiter cond = {0}, relock = {0};
    cond.relock = &relock;
    cond.mutex = &a;
    CHECK(gt_registry_remove(&w[0], true, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&w[2], true, GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&a));
    gt_registry_add(&cond, &b, t);
    CHECK(next(&b, t) == &other);
    CHECK(next(&b, t) == &cond);
    CHECK(gt_registry_any(&a), "listed at the mutex");
    CHECK(next(&a, t + 10) == NULL, "may just get it");
    CHECK(next(&a, t + ms) == &relock, "did not get it");
    CHECK(gt_registry_remove(&cond, true, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&relock, true, GT_LOCK_PATIENCE_NS));
    CHECK(gt_registry_remove(&other, true, GT_LOCK_PATIENCE_NS));
    CHECK(!gt_registry_any(&a) && !gt_registry_any(&b));
    test_futex(t, ms);
    test_arrival(t);
    return 0;
}
