/* See libc.h. */
#include "libc.h"

#include "arch/arch.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>

long gt_syscall_of(long number, long a, long b, long c, long d, long e, long f)
{
    enum { MAX_ERRNO = 4095 };
    long result = gt_arch_syscall(number, (const long[6]){a, b, c, d, e, f});
    if ((unsigned long)result < -(unsigned long)MAX_ERRNO)
        return result;
    errno = (int)-result;
    return -1;
}

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
