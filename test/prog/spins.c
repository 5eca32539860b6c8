/*
 * A thread that spins by sched_yield, on one CPU: while another one computes there, and then alone.
 * Prints how many yields there were, how many took so long that they may be in a trace, and how
 * many so long that they must be.
 */
#include "program.h"

enum { ALONE = 100000, COMPUTES_NS = 300000000, MAY_NS = 9900, MUST_NS = 1000000 };

static atomic_bool computed;

static void *compute(void *arg)
{
    for (uint64_t end = now_ns() + COMPUTES_NS; now_ns() < end;)
        ;
    computed = true;
    return arg;
}

int main(void)
{
    pthread_t thread;
    long yields = 0, may = 0, must = 0;
    stay_on(0);
    pthread_create(&thread, NULL, compute, NULL);
    for (long alone = 0; alone < ALONE; alone += computed) {
        long begin = now_ns();
        sched_yield();
        long took = now_ns() - begin;
        yields++;
        may += took >= MAY_NS;
        must += took >= MUST_NS;
    }
    pthread_join(thread, NULL);
    printf("%ld %ld %ld\n", yields, may, must);
    return 0;
}
