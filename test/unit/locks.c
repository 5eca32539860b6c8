/* Locks that are waited for within a time: it is time that counts, not how often one was woken. */
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

int main(void)
{
    pthread_t t;
    void *taken;
    CHECK(gt_trylock(&lock, GT_RANK_G));
    gt_debug_abandon(); /* as if somebody else had it */
    CHECK(!gt_lock_within(&lock, GT_RANK_G, 0) && !gt_lock_within(&lock, GT_RANK_G, 1000000));
    CHECK(pthread_create(&t, NULL, take, NULL) == 0);
    wake(50);
    gt_unlock(&lock);
    CHECK(pthread_join(t, &taken) == 0);
    CHECK(taken, "it was woken in vain, and gave up");
    CHECK(!gt_trylock(&lock, GT_RANK_G));
    return 0;
}
