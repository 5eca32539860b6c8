/* See shims.c and sscanf.c. */
#include <stdarg.h>

int __isoc99_vfscanf(void *file, const char *format, va_list ap);

int __isoc23_fscanf(void *file, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = __isoc99_vfscanf(file, format, ap);
    va_end(ap);
    return n;
}
