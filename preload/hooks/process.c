/* What ends a process, makes another one of it, or unloads a part of its code. */
#include "preload/fork.h"
#include "preload/process.h"
#include "preload/real.h"
#include "preload/thread.h"
#include "symbolize/modules.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

GT_EXPORT __attribute__((noreturn)) void _exit(int status)
{
    gt_process_end();
    gt_real._exit(status);
    __builtin_unreachable();
}

GT_EXPORT __attribute__((noreturn)) void _Exit(int status)
{
    gt_process_end();
    gt_real._Exit(status);
    __builtin_unreachable();
}

GT_EXPORT __attribute__((noreturn)) void abort(void)
{
    gt_process_end();
    gt_real.abort();
    __builtin_unreachable();
}

GT_EXPORT pid_t _Fork(void)
{
    unsigned held = gt_fork_begin();
    pid_t pid = gt_real._Fork();
    int saved = errno;
    gt_fork_end(held);
    errno = saved;
    return pid;
}

/* A library's symbols must be findable after it is gone. */
GT_EXPORT int dlclose(void *handle)
{
    struct gt_thread *t = gt_thread_enter();
    if (t)
        gt_modules_refresh();
    if (t)
        gt_thread_leave(t);
    int r = gt_real.dlclose(handle);
    t = gt_thread_enter();
    if (t)
        gt_modules_refresh();
    if (t)
        gt_thread_leave(t);
    return r;
}
