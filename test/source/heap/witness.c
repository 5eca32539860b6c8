/*
 * Between libgotrace.so and the allocator: prints the live bytes when the process ends, without
 * those of the tracer's thread, and the number of blocks which that has allocated.
 */
#include <malloc.h>

#include "../../prog/program.h"
static _Atomic long live, tracers;
static __thread int whose __attribute__((tls_model("initial-exec")));
static struct {
    void *(*malloc)(size_t), *(*calloc)(size_t, size_t), *(*realloc)(void *, size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
} real;
static volatile int resolving; /* glibc 2.31 promises that dlsym calls nothing here */
static char nursery[4096] __attribute__((aligned(16)));
static size_t used;
static int early(void)
{
    if (!real.free && !resolving) {
        resolving = 1;
        *(void **)&real.malloc = dlsym(RTLD_NEXT, "malloc");
        *(void **)&real.calloc = dlsym(RTLD_NEXT, "calloc");
        *(void **)&real.realloc = dlsym(RTLD_NEXT, "realloc");
        *(void **)&real.malloc_usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
        *(void **)&real.free = dlsym(RTLD_NEXT, "free");
        resolving = 0;
    }
    return resolving;
}
static void *early_alloc(size_t n)
{
    return nursery + (used += (n + 15) & ~15ul) - ((n + 15) & ~15ul);
}
static long count(void *p, long sign);
size_t malloc_usable_size(void *p)
{
    return early() ? 0 : real.malloc_usable_size(p);
}
void *malloc(size_t n)
{
    void *p = early() ? early_alloc(n) : real.malloc(n);
    count(p, 1);
    return p;
}
void *calloc(size_t n, size_t m)
{
    void *p = early() ? early_alloc(n * m) : real.calloc(n, m);
    count(p, 1);
    return p;
}
void free(void *p)
{
    if (early() || (size_t)((char *)p - nursery) < sizeof nursery)
        return;
    count(p, -1);
    real.free(p);
}
void *realloc(void *p, size_t n)
{
    long had = early() || !p ? 0 : malloc_usable_size(p);
    void *q = real.realloc(p, n);
    if (q && count(q, 1))
        live -= had;
    return q;
}
static long count(void *p, long sign)
{
    char name[16];
    if (!whose)
        whose = prctl(PR_GET_NAME, name) == 0 && strcmp(name, "gotrace") == 0 ? 2 : 1;
    tracers += p && whose == 2;
    long size = p && whose == 1 ? sign * (long)malloc_usable_size(p) : 0;
    live += size;
    return size;
}
__attribute__((destructor)) static void end(void)
{
    dprintf(2, "live %ld tracers %ld\n", live, tracers);
}
