/*
 * A signal handler makes events for several buffers. The program's own allocator counts its calls
 * from within the handler, which may have interrupted it.
 */
#include "../../prog/program.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static volatile int in_handler, calls, null;

void *malloc(size_t n)
{
    calls += in_handler;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    calls += in_handler;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    calls += in_handler;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    calls += in_handler;
    __libc_free(p);
}

static void on_signal(int number)
{
    (void)number;
    in_handler = 1;
    for (int i = 0; i < 1000; i++)
        (void)!write(null, "", 1);
    in_handler = 0;
}

int main(void)
{
    null = open("/dev/null", O_WRONLY);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    printf("%d\n", calls);
    return 0;
}
