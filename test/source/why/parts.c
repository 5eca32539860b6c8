/*
 * An OpenMP loop of two threads, twice, of which the second has five times as much to do. parts
 * [even|half] prints how long each of them worked there, in ns, and how long the program took.
 * even: both have as much to do. half: each iteration takes half as long.
 */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void weigh(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static uint64_t worked[2];

static __attribute__((noinline)) void weigh_rows(const long *ms)
{
#pragma omp parallel num_threads(2)
    {
        uint64_t begin = now();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < 4; i++)
            weigh(ms[i]);
        worked[omp_get_thread_num()] += now() - begin;
    }
}

int main(int argc, char **argv)
{
    static const long uneven[] = {10, 20, 70, 80}, half[] = {5, 10, 35, 40},
                      even[] = {45, 45, 45, 45};
    const char *mode = argc > 1 ? argv[argc - 1] : "";
    uint64_t begin = now();
    for (int i = 0; i < 2; i++)
        weigh_rows(strcmp(mode, "even") == 0 ? even : strcmp(mode, "half") == 0 ? half : uneven);
    printf("%llu %llu %llu\n", (unsigned long long)worked[0], (unsigned long long)worked[1],
           (unsigned long long)(now() - begin));
    return 0;
}
