/* yields T N: T threads call sched_yield N times each: two events a call if every yield is written
 * (GOTRACE_SYSCALL_MIN=0). */
#include "program.h"

static long calls;

static void *yield(void *arg)
{
    for (long i = 0; i < calls; i++)
        sched_yield();
    return arg;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[1]) : 8;
    calls = argc > 2 ? atol(argv[2]) : 1000;
    RUN_THREADS(n, yield, NULL);
    return 0;
}
