/* Hooks of the functions that make threads, wait for their end, and name them. */
#include "thread_names.h"

#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "preload/bind/real.h"
#include "preload/life/births.h"
#include "preload/life/process_start.h"
#include "preload/life/seccomp.h"
#include "preload/shared/lock_kind.h"
#include "preload/stacks/code_layouts.h"
#include "preload/stacks/routine.h"
#include "preload/thread/capture.h"
#include "preload/waits/wait.h"

#include <stdarg.h>

/* pthread_create ----------------------------------------------------------------------------- */

/* Runs first in a new thread. Ends in a jump, so that the stack below the program's routine is the
 * one that it has without us. */
static void *trampoline(void *arg)
{
    struct gt_thread *t = arg;
    void *(*start)(void *) = t->start;
    void *start_arg = t->arg;
    gt_thread_begin(t);
    return start(start_arg);
}

static struct gt_thread *create_event(enum gt_hook hook, struct gt_thread *t,
                                      void *(*start)(void *), void *arg)
{
    struct gt_thread *child = gt_thread_new();
    if (!child)
        return NULL;
    child->start = start;
    child->arg = arg;
    uintptr_t python = gt_capture_python(t);
    uint64_t function = 0;
    if (!python || !gt_python_name_made(python, child->name, &function))
        child->name[0] = 0;
    struct gt_stack *routine =
        gt_capture_routine(function ? (void *)(uintptr_t)function : gt_routine_of(start, arg));
    struct gt_stack *stack = gt_capture(t, hook);
    if (!gt_writer_pin(&t->w)) {
        gt_thread_drop(child);
        return NULL;
    }
    gt_ev_go_create(&t->w, &child->w.g, routine, stack);
    gt_writer_unpin(&t->w);
    return child;
}

/* The struct for the thread to be made; NULL: its creation is not recorded. attr NULL: the default
 * attributes. */
static struct gt_thread *create_begin(enum gt_hook hook, const pthread_attr_t *attr,
                                      void *(*start)(void *), void *arg)
{
    gt_process_start_early();
    gt_process_second_thread();
    struct gt_thread *t = gt_thread_enter();
    if (!t)
        return NULL;
    pthread_attr_t defaults;
    pthread_attr_init(&defaults);
    struct gt_thread *child = create_event(hook, t, start, arg);
    if (child)
        pthread_attr_getstacksize(attr ? attr : &defaults, &child->stack_bytes);
    gt_thread_leave(t);
    return child;
}

/* Forgets a thread that could not be made. The trace shows a goroutine that never ran. */
static void create_failed(struct gt_thread *child)
{
    gt_ev_go_forget(&child->w.g);
    gt_thread_drop(child);
}

GT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
                             void *arg)
{
    struct gt_thread *child = create_begin(GT_HOOK_pthread_create, attr, start, arg);
    if (!child)
        return gt_real.pthread_create(thread, attr, start, arg);
    int r = gt_real.pthread_create(thread, attr, trampoline, child);
    if (r != 0)
        create_failed(child);
    return r;
}

/* The trampoline for thrd_create. libc keeps the int result as the low word of a pointer. */
static int c11_trampoline(void *arg)
{
    return (int)(intptr_t)trampoline(arg);
}

GT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
    struct gt_thread *child =
        create_begin(GT_HOOK_thrd_create, NULL, (void *(*)(void *))(void (*)(void))start, arg);
    if (!child)
        return gt_real.thrd_create(thread, start, arg);
    int r = gt_real.thrd_create(thread, c11_trampoline, child);
    if (r != thrd_success)
        create_failed(child);
    return r;
}

/* pthread_join and relatives ----------------------------------------------------------------- */

GT_EXPORT int pthread_tryjoin_np(pthread_t thread, void **result)
{
    return gt_real.pthread_tryjoin_np(thread, result);
}

/* A thread that has ended is joined without a wait, hence without an event. */

#define JOIN(name, parameters, arguments, when)                                           \
    GT_EXPORT int name parameters                                                         \
    {                                                                                     \
        int r = gt_real.pthread_tryjoin_np(thread, result);                               \
        if (r != EBUSY)                                                                   \
            return r;                                                                     \
        struct gt_timeout end = when;                                                     \
        GT_WAIT(wait) =                                                                   \
            gt_wait_begin_lock(GT_HOOK_##name, GT_LOCK_JOIN, (const void *)thread, &end); \
        return gt_wait_result(&wait, gt_real.name arguments, ETIMEDOUT, &end);            \
    }

JOIN(pthread_join, (pthread_t thread, void **result), (thread, result), gt_timeout_none())
JOIN(pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *until),
     (thread, result, until), gt_timeout_at(CLOCK_REALTIME, until))
JOIN(pthread_clockjoin_np,
     (pthread_t thread, void **result, clockid_t clock, const struct timespec *until),
     (thread, result, clock, until), gt_timeout_at(clock, until))

/* A thrd_t is a pthread_t, its result the pointer's low word (glibc's nptl/thrd_join.c). */
GT_EXPORT int thrd_join(thrd_t thread, int *result)
{
    void *word;
    int r = gt_real.pthread_tryjoin_np((pthread_t)thread, &word);
    if (r == 0 && result)
        *result = (int)(intptr_t)word;
    if (r == 0)
        return thrd_success;
    if (r != EBUSY)
        return gt_real.thrd_join(thread, result);
    struct gt_timeout never = gt_timeout_none();
    GT_WAIT(wait) =
        gt_wait_begin_lock(GT_HOOK_thrd_join, GT_LOCK_JOIN, (const void *)thread, &never);
    return gt_real.thrd_join(thread, result);
}

/* Names -------------------------------------------------------------------------------------- */

/* pthread_setname_np is under way: before glibc 2.34 it calls our prctl hook. */
static __thread bool is_naming __attribute__((tls_model("initial-exec")));

GT_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    is_naming = true;
    int r = gt_real.pthread_setname_np(thread, name);
    is_naming = false;
    bool self = r == 0 && pthread_equal(thread, pthread_self());
    uint32_t tid = r == 0 && !self && gt_recording() ? gt_number_of_thread(thread) : 0;
    if (self)
        gt_thread_names_self(name);
    else if (tid)
        gt_given_name(tid, name); /* taken when the thread next goes on */
    return r;
}

/* Passes five words to the kernel, as libc's variadic function does. */
GT_EXPORT int prctl(int option, ...)
{
    va_list ap;
    va_start(ap, option);
    unsigned long a = va_arg(ap, unsigned long), b = va_arg(ap, unsigned long);
    unsigned long c = va_arg(ap, unsigned long), d = va_arg(ap, unsigned long);
    va_end(ap);
    if (option == PR_SET_SECCOMP)
        gt_seccomp_begins_prctl(a, (const void *)b);
    int r = (int)gt_syscall(SYS_prctl, option, a, b, c, d);
    if (r == 0 && option == PR_SET_NAME && !is_naming)
        gt_thread_names_self((const char *)a);
    return r;
}
