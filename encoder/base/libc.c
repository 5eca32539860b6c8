/* See libc.h. */
#include "libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>

int (*gt_stat)(const char *path, struct stat *st) = stat;
int (*gt_lstat)(const char *path, struct stat *st) = lstat;
int (*gt_fstat)(int fd, struct stat *st) = fstat;

/*
 * Finds a text in a table. Every glibc has the tables, but none can be linked to. Functions came
 * later.
 */
static const char *of_table(const char *name, int last, int i)
{
    const char *const *texts = dlsym(RTLD_DEFAULT, name);
    return texts && i >= 0 && i <= last ? texts[i] : NULL;
}

const char *gt_libc_error(int error)
{
    const char *text =
        strerrordesc_np ? strerrordesc_np(error) : of_table("sys_errlist", EHWPOISON, error);
    return text ? text : "unknown error";
}

const char *gt_libc_signal(int number)
{
    return sigabbrev_np ? sigabbrev_np(number) : of_table("sys_sigabbrev", SIGSYS, number);
}
