/* See keys.h. */
#include "keys.h"

#include "preload/real.h"
#include "preload/thread.h"

#include <errno.h>

_Atomic bool gt_keys_have_destructors;

static void note(void (*destructor)(void *))
{
    if (destructor)
        gt_keys_have_destructors = true;
}

GT_EXPORT int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    note(destructor);
    int r = gt_real.pthread_key_create(key, destructor);
    return r == EAGAIN && gt_thread_give_key() ? gt_real.pthread_key_create(key, destructor) : r;
}

/* What libgcc and libstdc++ call. */
GT_EXPORT int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    note(destructor);
    int r = gt_real.__pthread_key_create(key, destructor);
    return r == EAGAIN && gt_thread_give_key() ? gt_real.__pthread_key_create(key, destructor) : r;
}

GT_EXPORT int tss_create(tss_t *key, tss_dtor_t destructor)
{
    note(destructor);
    int r = gt_real.tss_create(key, destructor);
    return r != thrd_success && gt_thread_give_key() ? gt_real.tss_create(key, destructor) : r;
}
