/*
 * Events at a rate: storm <threads> <seconds> <events a second>. Each thread begins and ends
 * regions (gotrace.h), two events each, in bursts of a millisecond's worth; one that is late makes
 * up for it.
 */
#include "../../preload/gotrace.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

enum { MS = 1000000 };

static long bursts, regions; /* and in each of them */

static void sleep_until(uint64_t ns)
{
    struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void *run(void *arg)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t due = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
    for (long i = 0; i < bursts; i++) {
        for (long k = 0; k < regions; k++)
            gotrace_region_end(gotrace_region_begin(0, "storm"));
        sleep_until(due += MS);
    }
    return arg;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4;
    pthread_t thread[n];
    bursts = 1000 * (argc > 2 ? atol(argv[2]) : 2);
    regions = (argc > 3 ? atol(argv[3]) : 1000000) / 2000 / n;
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, run, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
