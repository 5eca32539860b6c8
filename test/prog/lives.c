/*
 * lives KIND: threads that say at their end what the kernel has counted of them. Prints for each
 * "tid life cpu queue", in ns: how long it lived by its own clock, its CPU time, and its time in
 * run queues, -1 where the kernel does not count that. burn: six compute for 2 s. mix: five compute
 * and sleep in turns, as long. short: 1,000 that take turns compute for 2 ms, and the tid is 0:
 * only the sum is said.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RUN_NS = 2000000000, SHORT_NS = 2000000, SHORT = 1000, AT_ONCE = 4, MOST = 6 };

static _Atomic long short_life, short_cpu;

static long now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void tell(long begin)
{
    char path[64], line[128] = "";
    long cpu = 0, queue = -1;
    int tid = gettid();
    long life = now(CLOCK_MONOTONIC) - begin;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file))
        sscanf(line, "%ld %ld", &cpu, &queue);
    if (file)
        fclose(file);
    printf("%d %ld %ld %ld\n", tid, life, now(CLOCK_THREAD_CPUTIME_ID), queue);
}

static void *burn(void *arg)
{
    long begin = now(CLOCK_MONOTONIC);
    while (now(CLOCK_MONOTONIC) - begin < RUN_NS)
        ;
    tell(begin);
    return arg;
}

static void *mix(void *arg)
{
    long begin = now(CLOCK_MONOTONIC), ms = 1 + (long)arg;
    while (now(CLOCK_MONOTONIC) - begin < RUN_NS) {
        long until = now(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;
        while (now(CLOCK_THREAD_CPUTIME_ID) < until)
            ;
        usleep((useconds_t)(1000 + 1000 * ms));
    }
    tell(begin);
    return arg;
}

static void *live_shortly(void *arg)
{
    long begin = now(CLOCK_MONOTONIC);
    while (now(CLOCK_MONOTONIC) - begin < SHORT_NS)
        ;
    atomic_fetch_add(&short_cpu, now(CLOCK_THREAD_CPUTIME_ID));
    atomic_fetch_add(&short_life, now(CLOCK_MONOTONIC) - begin);
    return arg;
}

static void run(void *(*routine)(void *), long n)
{
    pthread_t t[MOST];
    for (long i = 0; i < n; i++)
        pthread_create(&t[i], NULL, routine, (void *)i);
    for (long i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "burn") == 0) {
        run(burn, MOST);
    } else if (strcmp(argv[1], "mix") == 0) {
        run(mix, MOST - 1);
    } else {
        for (int i = 0; i < SHORT / AT_ONCE; i++)
            run(live_shortly, AT_ONCE);
        printf("0 %ld %ld -1\n", short_life, short_cpu);
    }
    return 0;
}
