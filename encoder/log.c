/* See log.h. No stdio stream is involved: the program may be holding its lock. */
#include "log.h"

#include "futex.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

bool gt_log_quiet;

static struct stat stderr_file;

void gt_log_init(void)
{
    int saved = errno;
    if (fstat(2, &stderr_file) != 0)
        stderr_file.st_ino = 0;
    errno = saved;
}

static bool stderr_is_the_same(void)
{
    struct stat now;
    return fstat(2, &now) == 0 && now.st_ino == stderr_file.st_ino &&
           now.st_dev == stderr_file.st_dev;
}

void gt_log(const char *format, ...)
{
    char line[1024] = "gotrace: ";
    enum { PREFIX = 9 };
    if (gt_log_quiet)
        return;
    int saved = errno;
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line + PREFIX, sizeof line - PREFIX - 1, format, ap);
    va_end(ap);
    if (n > (int)sizeof line - PREFIX - 2)
        n = (int)sizeof line - PREFIX - 2;
    line[PREFIX + n] = '\n';
    if (stderr_is_the_same())
        gt_syscall(SYS_write, 2, line, (size_t)PREFIX + (size_t)n + 1);
    errno = saved;
}
