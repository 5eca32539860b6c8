/*
 * The first object of elfutils' private linker namespace (elfutils.c): its symbols come before
 * libc's there. Built as a shared object of its own and carried inside libgotrace.so.
 */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Set by elfutils.c; does not return. */
EXPORT void (*gt_bail)(void);

/*
 * libdw 0.188 opens libdebuginfod from a constructor, and with it an HTTP and a TLS library, whose
 * destructors use pthread keys, which namespaces do not separate. Here it finds nothing to open.
 */
EXPORT void *dlopen(const char *path, int flags);
EXPORT void *dlopen(const char *path, int flags)
{
    (void)path;
    (void)flags;
    return NULL;
}

/* A damaged file must not end somebody else's process. */
static void bail(void)
{
    if (gt_bail)
        gt_bail();
    __builtin_trap();
}

EXPORT void abort(void);
EXPORT void abort(void)
{
    bail();
    __builtin_unreachable();
}

EXPORT void __assert_fail(const char *what, const char *file, unsigned line, const char *func);
EXPORT void __assert_fail(const char *what, const char *file, unsigned line, const char *func)
{
    (void)what;
    (void)file;
    (void)line;
    (void)func;
    bail();
    __builtin_unreachable();
}
