/*
 * What programs of test_cpu.py have in common: threads that burn so many seconds of CPU time,
 * which `threads` adds up.
 */
#pragma once
#include "../../prog/program.h"
__attribute__((noinline, unused)) static double cpu(void)
{
    struct timespec t; /* read here: cpu_ns would be two frames more in each stack */
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
__attribute__((noinline, unused)) static void spin(double seconds)
{
    for (double end = cpu() + seconds; cpu() < end;)
        for (volatile int i = 0; i < 10000; i++)
            ;
}
__attribute__((noinline, unused)) static void *sum(double seconds)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static double all;
    pthread_mutex_lock(&mutex);
    all += cpu() - seconds;
    pthread_mutex_unlock(&mutex);
    return &all;
}
__attribute__((noinline, unused)) static void *burn(void *seconds)
{
    double before = cpu();
    spin(*(double *)seconds);
    return sum(before);
}
__attribute__((noinline, unused)) static double threads(int n, void *(*what)(void *),
                                                        double seconds)
{
    pthread_t t[n];
    void *all = NULL;
    for (int i = 0; i < n; i++)
        pthread_create(&t[i], NULL, what, &seconds);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], &all);
    return *(double *)all;
}
