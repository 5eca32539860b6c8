/*
 * Four threads take a lock, sleep with it for a millisecond, give it up and take it again. A woken
 * waiter mostly finds it taken again, and goes on waiting. Prints how many calls had to wait.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 40 };
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int waited;

static void append(void)
{
    if (pthread_mutex_trylock(&journal)) {
        waited++;
        pthread_mutex_lock(&journal);
    }
    usleep(1000);
    pthread_mutex_unlock(&journal);
}

static void *work(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        append();
    return arg;
}

int main(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%d\n", waited);
}
