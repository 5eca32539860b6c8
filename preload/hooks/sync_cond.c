/*
 * Condition variables. A wait always blocks (or fails at once, which shows as a wait of no
 * length); before that it gives up the mutex, which may end another thread's wait.
 */
#include "sync_cond.h"

#include "sync_mutex.h"

#include "encoder/base/arch/arch.h"

#include <dlfcn.h>

struct gt_wait gt_cond_begin(enum gt_hook hook, const void *cond, pthread_mutex_t *mutex)
{
    gt_mutex_release(hook, mutex);
    return gt_wait_begin_for(&(struct gt_wait_for){
        .hook = hook, .reason = GT_REASON_COND, .addr = cond, .mutex = mutex});
}

GT_EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_wait, cond, mutex);
    return gt_real.pthread_cond_wait(cond, mutex);
}

GT_EXPORT int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                     const struct timespec *until)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_timedwait, cond, mutex);
    return gt_real.pthread_cond_timedwait(cond, mutex, until);
}

GT_EXPORT int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                     const struct timespec *until)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_clockwait, cond, mutex);
    return gt_real.pthread_cond_clockwait(cond, mutex, clock, until);
}

GT_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    gt_wake_one(GT_HOOK_pthread_cond_signal, cond);
    return gt_real.pthread_cond_signal(cond);
}

GT_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    gt_wake_all(GT_HOOK_pthread_cond_broadcast, cond);
    return gt_real.pthread_cond_broadcast(cond);
}

/*
 * Programs linked before glibc 2.3.2 have another layout of pthread_cond_t, told apart by symbol
 * version only (x86-64). Who asks for that version finds the functions below; everybody else, those
 * above.
 */
#ifdef GT_ARCH_COND_OLD_VERSION

#define VERSIONS(name)                                               \
    __asm__(".symver " #name ", " #name "@@@" GT_ARCH_COND_VERSION); \
    __asm__(".symver old_" #name ", " #name "@" GT_ARCH_COND_OLD_VERSION ", remove")

VERSIONS(pthread_cond_wait);
VERSIONS(pthread_cond_timedwait);
VERSIONS(pthread_cond_signal);
VERSIONS(pthread_cond_broadcast);

/* libc has it, since the program was linked to it. Looked up at every call: few ever make one. */
#define LIBCS_OLD(name) ((__typeof__(&name))dlvsym(RTLD_NEXT, #name, GT_ARCH_COND_OLD_VERSION))

GT_EXPORT int old_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_wait, cond, mutex);
    return LIBCS_OLD(pthread_cond_wait)(cond, mutex);
}

GT_EXPORT int old_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                         const struct timespec *until)
{
    GT_WAIT(wait) = gt_cond_begin(GT_HOOK_pthread_cond_timedwait, cond, mutex);
    return LIBCS_OLD(pthread_cond_timedwait)(cond, mutex, until);
}

GT_EXPORT int old_pthread_cond_signal(pthread_cond_t *cond)
{
    gt_wake_one(GT_HOOK_pthread_cond_signal, cond);
    return LIBCS_OLD(pthread_cond_signal)(cond);
}

GT_EXPORT int old_pthread_cond_broadcast(pthread_cond_t *cond)
{
    gt_wake_all(GT_HOOK_pthread_cond_broadcast, cond);
    return LIBCS_OLD(pthread_cond_broadcast)(cond);
}

#endif
