/*
 * Preloaded behind the library, which makes its system calls by this syscall(2): each call here is
 * one by our code, and calls HOOK.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
int ready;
static void *volatile block;
static __thread volatile int nested;
long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!next)
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (ready && !nested) {
        nested = 1;
        HOOK;
        nested = 0;
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
