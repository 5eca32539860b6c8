/* An allocator with the functions of C23. */
#define HEAP (8 << 20)
#include <stdlib.h>
#include "own_malloc.h"

size_t malloc_usable_size(void *p)
{
    return p ? ((size_t *)p)[-2] : 0;
}
static void *take(size_t) __attribute__((alias("malloc")));
void *aligned_alloc(size_t alignment, size_t n)
{
    char *p = take(n + alignment);
    size_t to = -(size_t)p & (alignment - 1);
    p += to;
    ((size_t *)p)[-2] = n + alignment - to;
    return p;
}
void free_sized(void *p, size_t n)
{
    (void)p, (void)n;
}
void free_aligned_sized(void *p, size_t alignment, size_t n)
{
    (void)p, (void)alignment, (void)n;
}
