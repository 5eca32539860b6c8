/* exec(3): what was recorded is left as a whole file by the program that was. */
#include "preload/process.h"
#include "preload/real.h"

#include <stdarg.h>
#include <unistd.h>

GT_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    gt_process_before_exec();
    return gt_real.execve(path, argv, envp);
}

GT_EXPORT int execv(const char *path, char *const argv[])
{
    gt_process_before_exec();
    return gt_real.execv(path, argv);
}

GT_EXPORT int execvp(const char *file, char *const argv[])
{
    gt_process_before_exec();
    return gt_real.execvp(file, argv);
}

GT_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    gt_process_before_exec();
    return gt_real.execvpe(file, argv, envp);
}

GT_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    gt_process_before_exec();
    return gt_real.fexecve(fd, argv, envp);
}

GT_EXPORT int execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
    gt_process_before_exec();
    return gt_real.execveat(dir, path, argv, envp, flags);
}

/* The list forms, as the array forms they are defined by. */
#define COLLECT_ARGS(argv, first, ap)  \
    size_t argc = 1;                   \
    va_start(ap, first);               \
    while (va_arg(ap, char *))         \
        argc++;                        \
    va_end(ap);                        \
    char *argv[argc + 1];              \
    argv[0] = (char *)first;           \
    va_start(ap, first);               \
    for (size_t i = 1; i <= argc; i++) \
        argv[i] = va_arg(ap, char *);

GT_EXPORT int execl(const char *path, const char *arg, ...)
{
    va_list ap;
    COLLECT_ARGS(argv, arg, ap)
    va_end(ap);
    return execv(path, argv);
}

GT_EXPORT int execlp(const char *file, const char *arg, ...)
{
    va_list ap;
    COLLECT_ARGS(argv, arg, ap)
    va_end(ap);
    return execvp(file, argv);
}

GT_EXPORT int execle(const char *path, const char *arg, ...)
{
    va_list ap;
    COLLECT_ARGS(argv, arg, ap)
    char *const *envp = va_arg(ap, char *const *);
    va_end(ap);
    return execve(path, argv, envp);
}
