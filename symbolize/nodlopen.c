/*
 * The first object of elfutils' private linker namespace (elfutils.c): its symbols come before
 * libc's there. libdw 0.188 opens libdebuginfod from a constructor, and with it an HTTP and a TLS
 * library, whose destructors use pthread keys, which namespaces do not separate. Here it finds
 * nothing to open. Built as a shared object of its own and carried inside libgotrace.so.
 */
#include <stddef.h>

__attribute__((visibility("default"))) void *dlopen(const char *path, int flags)
{
    (void)path;
    (void)flags;
    return NULL;
}
