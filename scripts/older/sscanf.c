/* See shims.c. Apart from it and fscanf.c: the library has hooks of some of these names. */
#include <stdarg.h>

int __isoc99_vsscanf(const char *text, const char *format, va_list ap);

/* Since glibc 2.38: %i reads binary numbers, 0b…, too. */
int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = __isoc99_vsscanf(text, format, ap);
    va_end(ap);
    return n;
}
