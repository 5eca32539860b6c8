/* See glibc.h. */
#include "glibc.h"

#include <gnu/libc-version.h>

uint32_t gt_glibc_cond_flags_at = offsetof(pthread_cond_t, __data.__wrefs);
_Static_assert(offsetof(pthread_cond_t, __data.__wrefs) == (__GLIBC_PREREQ(2, 41) ? 28 : 36), "");

/* Reads the digits itself: atoi may be a sanitizer's that is not ready yet. */
int gt_glibc_minor(void)
{
    int minor = 0;
    for (const char *c = gnu_get_libc_version() + sizeof "2." - 1; *c >= '0' && *c <= '9'; c++)
        minor = 10 * minor + (*c - '0');
    return minor;
}

void gt_glibc_init(void)
{
    gt_glibc_cond_flags_at = gt_glibc_cond_layouts[gt_glibc_minor() >= 41].flags;
}
