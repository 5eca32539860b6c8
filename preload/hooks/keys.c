/*
 * Keys of thread-specific data, as far as they matter for where a thread ends (thread.c); and the
 * first thing of that kind that Python does, before it executes anything.
 */
#include "preload/process.h"
#include "preload/real.h"
#include "preload/stacks/python.h"
#include "preload/thread.h"

_Atomic bool gt_keys_have_destructors;

/*
 * Before glibc 2.34 the first dlsym makes a key, and another one, from within that, would wait for
 * itself. Nothing that this calls may look for a function then: it is we who called that dlsym.
 */
static void meet(const void *caller)
{
    if (!gt_real_is_resolved())
        return;
    struct gt_thread *t = gt_thread_enter();
    if (t || (!gt_recording() && !gt_process_is_left_alone()))
        gt_python_meet(caller);
    if (t)
        gt_thread_leave(t);
}

#define CREATE(name, failed, parameters)                                             \
    GT_EXPORT int name parameters                                                    \
    {                                                                                \
        if (destructor)                                                              \
            gt_keys_have_destructors = true;                                         \
        meet(__builtin_return_address(0));                                           \
        int r = gt_real.name(key, destructor);                                       \
        return (failed) && gt_thread_give_key() ? gt_real.name(key, destructor) : r; \
    }

CREATE(pthread_key_create, r == EAGAIN, (pthread_key_t * key, void (*destructor)(void *)))
/* What libgcc and libstdc++ call. */
CREATE(__pthread_key_create, r == EAGAIN, (pthread_key_t * key, void (*destructor)(void *)))
CREATE(tss_create, r != thrd_success, (tss_t * key, tss_dtor_t destructor))
