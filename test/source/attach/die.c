/*
 * Preloaded to the command: the process DIE_WHO, by default the command, is killed right after the
 * command's DIE_ATth ptrace(2). Its end adds the number of its calls to the file DIE_COUNT.
 */
#include <stdarg.h>

#include "../../prog/program.h"

static long n;

long ptrace(int request, ...)
{
    static long (*real)(int, ...);
    va_list ap;
    va_start(ap, request);
    long a = va_arg(ap, long), b = va_arg(ap, long), c = va_arg(ap, long);
    va_end(ap);
    if (!real)
        real = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
    long r = real(request, a, b, c);
    if (++n == atol(getenv("DIE_AT")))
        kill(getenv("DIE_WHO") ? atoi(getenv("DIE_WHO")) : getpid(), SIGKILL);
    return r;
}

__attribute__((destructor)) static void count(void)
{
    if (getenv("DIE_COUNT"))
        dprintf(open(getenv("DIE_COUNT"), O_WRONLY | O_CREAT | O_APPEND, 0600), "%ld ", n);
}
