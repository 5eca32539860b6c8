/* exec(3): what was recorded is left as a whole file by the program that was. */
#include "preload/process.h"
#include "preload/real.h"

#include <stdarg.h>
#include <unistd.h>

#define EXEC(name, parameters, arguments) \
    GT_EXPORT int name parameters         \
    {                                     \
        gt_process_before_exec();         \
        return gt_real.name arguments;    \
    }

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(execv, (const char *path, char *const argv[]), (path, argv))
EXEC(execvp, (const char *file, char *const argv[]), (file, argv))
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp))
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp))
EXEC(execveat, (int dir, const char *path, char *const argv[], char *const envp[], int flags),
     (dir, path, argv, envp, flags))

/* The list forms, as the array forms that they are defined by. */
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
        int r = as(file, argv __VA_ARGS__);                    \
        va_end(ap);                                            \
        return r;                                              \
    }

EXEC_LIST(execl, execv)
EXEC_LIST(execlp, execvp)
EXEC_LIST(execle, execve, , va_arg(ap, char *const *))
