/* Hooks of functions that end a process, make another one, or unload code. */
#include "encoder/cpu/copies.h"
#include "encoder/cpu/watch.h"
#include "preload/bind/foreign.h"
#include "preload/bind/real.h"
#include "preload/life/fork.h"
#include "preload/life/process_end.h"
#include "preload/stacks/python_stack.h"
#include "preload/thread/thread.h"
#include "symbolize/elf/modules.h"

#include <stdarg.h>

#define END(name, parameters, arguments)                     \
    GT_EXPORT __attribute__((noreturn)) void name parameters \
    {                                                        \
        gt_process_end(false);                               \
        gt_real.name arguments;                              \
        __builtin_unreachable();                             \
    }

END(_exit, (int status), (status))
END(_Exit, (int status), (status))
END(abort, (void), ())

/* daemon(3). libc forks inside, and ends the caller where no hook sees it. */
GT_EXPORT int daemon(int nochdir, int noclose)
{
    gt_fork_check(); /* a child of clone(2) may not know: libc's fork handlers would tell it */
    gt_process_end(false);
    int r = gt_real.daemon(nochdir, noclose);
    GT_KEEP_ERRNO;
    if (r != 0)
        gt_process_stays();
    return r;
}

/* exec(3) with argument lists, by the array forms that define them. */
#define EXEC_LIST(name, as, ...)                               \
    GT_EXPORT int name(const char *file, const char *arg, ...) \
    {                                                          \
        va_list ap;                                            \
        size_t argc = 1;                                       \
        va_start(ap, arg);                                     \
        while (va_arg(ap, char *))                             \
            argc++;                                            \
        va_end(ap);                                            \
        char *argv[argc + 1];                                  \
        argv[0] = (char *)arg;                                 \
        va_start(ap, arg);                                     \
        for (size_t i = 1; i <= argc; i++)                     \
            argv[i] = va_arg(ap, char *);                      \
        gt_process_before_exec();                              \
        int r = gt_real.as(file, argv __VA_ARGS__);            \
        va_end(ap);                                            \
        return r;                                              \
    }

EXEC_LIST(execl, execv)
EXEC_LIST(execlp, execvp)
EXEC_LIST(execle, execve, , va_arg(ap, char *const *))

GT_EXPORT pid_t _Fork(void)
{
    if (gt_real._Fork == fork) /* this libc has only fork, which our fork handlers follow */
        return fork();
    unsigned held = gt_fork_begin();
    pid_t pid = gt_real._Fork();
    GT_KEEP_ERRNO;
    gt_fork_end(held);
    return pid;
}

/* What a child of clone(2) needs when it begins. */
struct cloned {
    int (*fn)(void *);
    void *arg;
    unsigned held;
};

static int begin_cloned(void *arg)
{
    struct cloned *child = arg;
    gt_fork_give_back(child->held);
    return child->fn(child->arg);
}

/*
 * clone(2). A child that shares its maker's memory is a thread, or like a child of vfork: then
 * nothing is held.
 */
GT_EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
    va_list ap;
    va_start(ap, arg);
    void *parent = va_arg(ap, void *), *tls = va_arg(ap, void *), *child = va_arg(ap, void *);
    va_end(ap);
    if (flags & CLONE_VM || !fn || !stack) /* without fn and stack, libc refuses */
        return gt_real.clone(fn, stack, flags, arg, parent, tls, child);
    struct cloned to = {fn, arg, gt_fork_begin()};
    int pid = gt_real.clone(begin_cloned, stack, flags, &to, parent, tls, child);
    GT_KEEP_ERRNO;
    gt_fork_end(to.held);
    return pid;
}

/*
 * dlclose(3). The module map is refreshed first, so that a library's symbols can be found after it
 * is gone.
 */
GT_EXPORT int dlclose(void *handle)
{
    struct gt_thread *t = gt_thread_enter();
    if (t)
        gt_modules_refresh();
    if (t)
        gt_thread_leave(t);
    gt_copies_hold();
    gt_python_hold();
    int r = gt_real.dlclose(handle);
    gt_copies_go_on();
    gt_foreign_forget();
    t = gt_thread_enter();
    if (t)
        gt_modules_refresh();
    if (t)
        gt_python_go_on();
    if (t)
        gt_thread_leave(t);
    return r;
}
