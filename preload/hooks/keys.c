/* Keys of thread-specific data, as far as they matter for where a thread ends: thread.c. */
#include "preload/real.h"
#include "preload/thread.h"

_Atomic bool gt_keys_have_destructors;

#define CREATE(name, failed, parameters)                                             \
    GT_EXPORT int name parameters                                                    \
    {                                                                                \
        if (destructor)                                                              \
            gt_keys_have_destructors = true;                                         \
        int r = gt_real.name(key, destructor);                                       \
        return (failed) && gt_thread_give_key() ? gt_real.name(key, destructor) : r; \
    }

CREATE(pthread_key_create, r == EAGAIN, (pthread_key_t * key, void (*destructor)(void *)))
/* What libgcc and libstdc++ call. */
CREATE(__pthread_key_create, r == EAGAIN, (pthread_key_t * key, void (*destructor)(void *)))
CREATE(tss_create, r != thrd_success, (tss_t * key, tss_dtor_t destructor))
