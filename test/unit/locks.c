/*
 * Locks that are waited for within a time: it is time that counts, not how often one was woken. A
 * hook does not wait for a lock that a standing thread may hold.
 */
#include "encoder/base/futex.h"

#include "check.h"

#include <pthread.h>

static struct gt_lock lock;

static void *take(void *arg)
{
    (void)arg;
    return gt_lock_within(&lock, GT_RANK_G, 10 * (int64_t)GT_LOCK_PATIENCE_NS) ? &lock : NULL;
}

/* Wakes that came too late, as where the lock has been taken by another thread meanwhile. */
static void wake(int times)
{
    while (times)
        times -= gt_syscall(SYS_futex, &lock.word, FUTEX_WAKE_PRIVATE, 1) == 1;
}

static uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t hook_waits(void)
{
    uint64_t since = now();
    CHECK(!gt_lock_within(&lock, GT_RANK_G, GT_HOOK_PATIENCE_NS));
    return now() - since;
}

/* The lock is held. The first hook gives up soon, others at once; whoever must have it waits. */
static void while_a_thread_stands(void)
{
    pthread_t t;
    void *taken;
    CHECK(hook_waits() >= GT_LOCK_PATIENCE_NS);
    gt_standing = 1;
    uint64_t first = hook_waits(), second = hook_waits();
    CHECK(first >= GT_STANDING_PATIENCE_NS && first < GT_LOCK_PATIENCE_NS, "%lu ns",
          (unsigned long)first);
    CHECK(second < GT_LOCK_PATIENCE_NS, "%lu ns", (unsigned long)second);
    CHECK(pthread_create(&t, NULL, take, NULL) == 0);
    wake(1);
    gt_unlock(&lock);
    CHECK(pthread_join(t, &taken) == 0 && taken);
    gt_standing = 0;
}

int main(void)
{
    pthread_t t;
    void *taken;
    CHECK(gt_trylock(&lock, GT_RANK_G));
    gt_debug_abandon(); /* as if another thread held it */
    CHECK(!gt_lock_within(&lock, GT_RANK_G, 0) && !gt_lock_within(&lock, GT_RANK_G, 1000000));
    CHECK(pthread_create(&t, NULL, take, NULL) == 0);
    wake(50);
    gt_unlock(&lock);
    CHECK(pthread_join(t, &taken) == 0);
    CHECK(taken, "it had a spurious wake-up, and gave up");
    CHECK(!gt_trylock(&lock, GT_RANK_G));
    while_a_thread_stands();
    return 0;
}
