/* Cancellation in every place a thread can wait, and while it computes; clean-up handlers run. */
#include "truth.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t ready;
static pthread_t sleeper;
static _Atomic int joiner;

static void cleanup(void *what)
{
    printf("cleanup %s\n", (const char *)what);
}

static void unlock(void *m)
{
    printf("unlock %d\n", pthread_mutex_unlock(m));
}

static void *in_sleep(void *arg)
{
    struct timespec day = {86400, 0};
    pthread_cleanup_push(cleanup, "sleep");
    pthread_barrier_wait(&ready);
    nanosleep(&day, NULL);
    pthread_cleanup_pop(0);
    return arg;
}

static void *in_cond(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    pthread_barrier_wait(&ready);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
    return arg;
}

static void *in_join(void *arg)
{
    pthread_cleanup_push(cleanup, "join");
    pthread_barrier_wait(&ready);
    joiner = tid();
    pthread_join(sleeper, NULL);
    pthread_cleanup_pop(0);
    return arg;
}

static void *computing(void *arg)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(cleanup, "computing");
    pthread_barrier_wait(&ready);
    for (;;)
        __asm__ volatile("");
    pthread_cleanup_pop(0);
    return arg;
}

static void cancel(pthread_t thread)
{
    void *result;
    int r = pthread_cancel(thread);
    int joined = pthread_join(thread, &result);
    printf("cancel %d join %d %s\n", r, joined,
           result == PTHREAD_CANCELED ? "canceled" : "returned");
}

static pthread_t start(void *(*routine)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, routine, NULL);
    pthread_barrier_wait(&ready);
    return thread;
}

int main(void)
{
    pthread_barrier_init(&ready, NULL, 2);
    cancel(start(in_sleep));
    pthread_t t = start(in_cond);
    pthread_mutex_lock(&mutex); /* got only once it waits */
    pthread_mutex_unlock(&mutex);
    cancel(t);
    sleeper = start(in_sleep);
    t = start(in_join);
    until_asleep(&joiner);
    cancel(t);
    cancel(sleeper);
    cancel(start(computing));
    printf("mutex %d\n", pthread_mutex_trylock(&mutex));
    return 0;
}
