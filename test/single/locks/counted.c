/*
 * Two threads, one after the other: each takes cache_lock 1,000 times, or so often as the argument
 * says. Then main takes other_lock 10 times, by functions with a timeout.
 */
#include "../../prog/program.h"
#include <threads.h>

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_lock = PTHREAD_MUTEX_INITIALIZER;

static void take(pthread_mutex_t *lock, int times)
{
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(lock);
        pthread_mutex_unlock(lock);
    }
}

/* Takes the lock 10 times, by each function that has a timeout. The timeout is two hours off. */
static void take_timed(pthread_mutex_t *lock)
{
    struct timespec late = after(CLOCK_REALTIME, 7200l * 1000000000);
    for (int i = 0; i < 10; i++) {
        if (i < 4)
            pthread_mutex_timedlock(lock, &late);
        else if (i < 7)
            pthread_mutex_clocklock(lock, CLOCK_REALTIME, &late);
        else
            mtx_timedlock((mtx_t *)lock, &late);
        pthread_mutex_unlock(lock);
    }
}

static void *run(void *arg)
{
    take(&cache_lock, *(int *)arg);
    return arg;
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1000;
    for (int i = 0; i < 2; i++) {
        RUN_THREADS(1, run, &times);
    }
    take_timed(&other_lock);
    return 0;
}
