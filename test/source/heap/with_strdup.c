/* An allocator with a strdup and a strndup of its own, which do not call its malloc by name. */
#include <stdlib.h>
#include "own_malloc.h"

size_t malloc_usable_size(void *p)
{
    return p ? ((size_t *)p)[-2] : 0;
}
static void *take(size_t) __attribute__((alias("malloc")));
char *strdup(const char *s)
{
    return memcpy(take(strlen(s) + 1), s, strlen(s) + 1);
}
char *strndup(const char *s, size_t n)
{
    char *p = take((n = strnlen(s, n)) + 1);
    p[n] = 0;
    return memcpy(p, s, n);
}
