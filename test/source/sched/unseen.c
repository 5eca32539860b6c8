/* Waits that no hook sees: each kind at a place of its own. Prints how many ns those of two places
 * took. */
#include "../../prog/program.h"
static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}
/* Without libc, so that no hook sees it. */
static void nap(long ns)
{
    struct timespec t = {0, ns};
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"((long)SYS_nanosleep), "D"(&t), "S"(0L)
                     : "rcx", "r11", "memory");
}
#define PLACE(name)                                     \
    __attribute__((noinline)) static long name(long ns) \
    {                                                   \
        long begin = now();                             \
        nap(ns);                                        \
        return now() - begin;                           \
    }
PLACE(before)
PLACE(long_one)
PLACE(short_one)
static void *work(void *arg)
{
    long all[2] = {0}, end = now() + 1000000000;
    while (now() < end)
        before(5000000);
    for (int i = 0; i < 300; i++) {
        all[0] += long_one(3000000);
        all[1] += short_one(1000000);
    }
    printf("%ld %ld\n", all[0], all[1]);
    return arg;
}
int main(void)
{
    RUN_THREADS(1, work, NULL);
    return 0;
}
