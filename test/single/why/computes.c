/*
 * A thread computes for 40 times 5 ms of CPU time, in a loop, in which it calls a function that
 * only sleeps.
 */
#include "../../prog/program.h"

#define CALLED __attribute__((noinline)) static void

CALLED nap(void)
{
    usleep(1000);
    __asm__ volatile("");
}

CALLED exchange(void)
{
    nap();
    __asm__ volatile("");
}

CALLED compute(void)
{
    compute_ns(5000000);
}

static void *work(void *arg)
{
    for (int i = 0; i < 40; i++) {
        exchange();
        compute();
    }
    return arg;
}

int main(void)
{
    nap();
    RUN_THREADS(1, work, NULL);
    return 0;
}
