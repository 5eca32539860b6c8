/* A thread waits 100 ms for a lock, then holds it six times for 10 ms. */
#include "../../prog/program.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
__attribute__((noinline)) static void hold(void)
{
    pthread_mutex_lock(&lock);
    usleep(10000);
    pthread_mutex_unlock(&lock);
}
static void *waiter(void *arg)
{
    pthread_barrier_wait(&held);
    for (int i = 0; i < 6; i++)
        hold();
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_barrier_init(&held, NULL, 2);
    pthread_create(&t, NULL, waiter, NULL);
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    usleep(100000);
    pthread_mutex_unlock(&lock);
    return pthread_join(t, NULL);
}
