/*
 * A thread that spins by sched_yield, on one CPU: while another one computes there, and then alone.
 * Prints how many yields there were, how many took so long that they may be in a trace, and how
 * many so long that they must be.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { ALONE = 100000, COMPUTES_NS = 300000000, MAY_NS = 9900, MUST_NS = 1000000 };

static atomic_bool computed;

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *compute(void *arg)
{
    for (long end = now() + COMPUTES_NS; now() < end;)
        ;
    computed = true;
    return arg;
}

int main(void)
{
    pthread_t thread;
    cpu_set_t first;
    long yields = 0, may = 0, must = 0;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    pthread_create(&thread, NULL, compute, NULL);
    for (long alone = 0; alone < ALONE; alone += computed) {
        long begin = now();
        sched_yield();
        long took = now() - begin;
        yields++;
        may += took >= MAY_NS;
        must += took >= MUST_NS;
    }
    pthread_join(thread, NULL);
    printf("%ld %ld %ld\n", yields, may, must);
    return 0;
}
