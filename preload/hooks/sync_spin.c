/*
 * Spin locks: only a thread that spins for longer than SPIN_MIN_NS shows as waiting, from the
 * moment when it began to spin.
 */
#include "encoder/base/arch/arch.h"
#include "encoder/base/clock.h"
#include "preload/bind/real.h"
#include "preload/shared/lock_kind.h"
#include "preload/waits/wait.h"

#define SPIN_MIN_NS 20000

/* Whether the caller gets the lock within the threshold. */
static bool spin(pthread_spinlock_t *lock, uint64_t since)
{
    uint64_t min = gt_clock_units(SPIN_MIN_NS);
    while (gt_clock_now() - since < min) {
        for (int i = 0; i < 16; i++)
            gt_arch_pause();
        if (pthread_spin_trylock(lock) == 0)
            return true;
    }
    return false;
}

GT_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (__builtin_expect(pthread_spin_trylock(lock) == 0, 1))
        return 0;
    if (!gt_recording())
        return gt_real.pthread_spin_lock(lock);
    uint64_t since = gt_clock_now();
    if (spin(lock, since))
        return 0;
    GT_WAIT(wait) = gt_wait_begin_for(&(struct gt_wait_for){.hook = GT_HOOK_pthread_spin_lock,
                                                            .reason = GT_REASON_SYNC,
                                                            .addr = (const void *)lock,
                                                            .kind = GT_LOCK_OTHER,
                                                            .since = since});
    return gt_real.pthread_spin_lock(lock);
}

GT_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    gt_wake_one(GT_HOOK_pthread_spin_unlock, (const void *)lock);
    return gt_real.pthread_spin_unlock(lock);
}
