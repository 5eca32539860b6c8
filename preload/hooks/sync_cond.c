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

#define WAIT(name, hook, real, parameters, arguments)               \
    GT_EXPORT int name parameters                                   \
    {                                                               \
        GT_WAIT(wait) = gt_cond_begin(GT_HOOK_##hook, cond, mutex); \
        return real arguments;                                      \
    }
#define WAKE(name, hook, real, wake)         \
    GT_EXPORT int name(pthread_cond_t *cond) \
    {                                        \
        wake(GT_HOOK_##hook, cond);          \
        return real(cond);                   \
    }

WAIT(pthread_cond_wait, pthread_cond_wait, gt_real.pthread_cond_wait,
     (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
WAIT(pthread_cond_timedwait, pthread_cond_timedwait, gt_real.pthread_cond_timedwait,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until))
WAIT(pthread_cond_clockwait, pthread_cond_clockwait, gt_real.pthread_cond_clockwait,
     (pthread_cond_t * cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
     (cond, mutex, clock, until))
WAKE(pthread_cond_signal, pthread_cond_signal, gt_real.pthread_cond_signal, gt_wake_one)
WAKE(pthread_cond_broadcast, pthread_cond_broadcast, gt_real.pthread_cond_broadcast, gt_wake_all)

/*
 * Programs linked before glibc 2.3.2 have another layout of pthread_cond_t, told apart by symbol
 * version only (x86-64). Who asks for that version finds these; everybody else, those above.
 */
#ifdef GT_ARCH_COND_OLD_VERSION

/* libc has it, since the program was linked to it. Looked up at every call: few ever make one. */
#define OLD(name) ((__typeof__(&name))dlvsym(RTLD_NEXT, #name, GT_ARCH_COND_OLD_VERSION))

WAIT(old_cond_wait, pthread_cond_wait, OLD(pthread_cond_wait),
     (pthread_cond_t * cond, pthread_mutex_t *mutex), (cond, mutex))
WAIT(old_cond_timedwait, pthread_cond_timedwait, OLD(pthread_cond_timedwait),
     (pthread_cond_t * cond, pthread_mutex_t *mutex, const struct timespec *until),
     (cond, mutex, until))
WAKE(old_cond_signal, pthread_cond_signal, OLD(pthread_cond_signal), gt_wake_one)
WAKE(old_cond_broadcast, pthread_cond_broadcast, OLD(pthread_cond_broadcast), gt_wake_all)

#define VERSIONS(name)                                                               \
    __asm__(".symver pthread_" #name ", pthread_" #name "@@@" GT_ARCH_COND_VERSION); \
    __asm__(".symver old_" #name ", pthread_" #name "@" GT_ARCH_COND_OLD_VERSION ", remove")

VERSIONS(cond_wait);
VERSIONS(cond_timedwait);
VERSIONS(cond_signal);
VERSIONS(cond_broadcast);

#endif
