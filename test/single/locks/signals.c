/*
 * pthread_cond_signal without a waiter, twice for one waiter, and in time. Prints how many waits
 * timed out.
 */
#include "../../prog/program.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER, never = PTHREAD_COND_INITIALIZER;
static int turns, timeouts, waiting;
static void *worker(void *arg)
{
    pthread_mutex_lock(&m);
    while (turns < 50) {
        waiting = 1;
        pthread_cond_wait(&news, &m);
    }
    for (int i = 0; i < 20; i++) {
        struct timespec t = after(CLOCK_REALTIME, 1000000);
        timeouts += pthread_cond_timedwait(&news, &m, &t) != 0;
    }
    pthread_mutex_unlock(&m);
    return arg;
}
__attribute__((noinline)) static void tell(void)
{
    pthread_cond_signal(&news);
}
int main(void)
{
    pthread_t t;
    struct timespec ms = {0, 3000000}, us = {0, 200000};
    for (int i = 0; i < 30; i++)
        pthread_cond_signal(&never); /* no thread ever waits for that */
    pthread_create(&t, NULL, worker, NULL);
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&m);
        while (!waiting) {
            pthread_mutex_unlock(&m);
            nanosleep(&ms, NULL);
            pthread_mutex_lock(&m);
        }
        turns++;
        waiting = 0;
        tell();
        nanosleep(&us, NULL); /* who was told has to wait for the mutex now, and for nothing else */
        tell();
        pthread_mutex_unlock(&m);
    }
    pthread_join(t, NULL);
    for (int i = 0; i < 17; i++)
        tell();
    for (int i = 0; i < 5; i++)
        pthread_cond_broadcast(&news);
    printf("%d\n", timeouts);
    return 0;
}
