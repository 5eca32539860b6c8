/*
 * Keys of thread-specific data. A key with a destructor decides where a thread ends (births.c).
 * Python creates a key before it executes anything, so this is where we find Python.
 */
#include "preload/bind/real.h"
#include "preload/life/births.h"
#include "preload/process/process_state.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/thread.h"

/*
 * Looks for Python. Before glibc 2.34 the first dlsym creates a key; another dlsym inside it would
 * wait for itself. So nothing may look up a function here while our own functions are being
 * resolved: that dlsym is ours.
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
/* libgcc and libstdc++ call this one. */
CREATE(__pthread_key_create, r == EAGAIN, (pthread_key_t * key, void (*destructor)(void *)))
CREATE(tss_create, r != thrd_success, (tss_t * key, tss_dtor_t destructor))
