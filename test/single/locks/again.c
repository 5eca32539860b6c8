/* A thread sleeps with a lock that main waits for, six times in one function. */
#include "../../prog/program.h"

enum { TIMES = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;

static void __attribute__((noinline)) take(void)
{
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&taken);
    usleep(20000);
    pthread_mutex_unlock(&lock);
}

static void *hold(void *arg)
{
    for (int i = 0; i < TIMES; i++) {
        take();
        pthread_barrier_wait(&taken);
    }
    return arg;
}

int main(void)
{
    pthread_t holder;
    pthread_barrier_init(&taken, NULL, 2);
    pthread_create(&holder, NULL, hold, NULL);
    for (int i = 0; i < TIMES; i++) {
        pthread_barrier_wait(&taken);
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&taken);
    }
    return pthread_join(holder, NULL);
}
