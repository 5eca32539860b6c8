/*
 * A library whose thread runs until the library's destructor, which waits for the thread's end in
 * one of the ways below and says for how long.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { JOIN, YIELD, SPIN };

static atomic_bool stop, ended;
static pthread_t thread;

static void *run(void *arg)
{
    while (!stop)
        usleep(1000);
    ended = true;
    return arg;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_create(&thread, NULL, run, NULL);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

__attribute__((destructor)) static void end(void)
{
    double since = now_ms();
    stop = true;
    if (WAY == JOIN)
        pthread_join(thread, NULL);
    while (!ended)
        if (WAY == YIELD)
            sched_yield();
    dprintf(STDERR_FILENO, "waited %.0f ms\n", now_ms() - since);
}
