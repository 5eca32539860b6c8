/*
 * Two threads post one semaphore, argv[1] rounds of WAITERS posts each, and so write far more than
 * those who wait there: where there is no room to write, it is they who wait for it.
 */
#include "program.h"

enum { POSTERS = 2, WAITERS = 16 };

static sem_t sem;
static int rounds;
static _Atomic int taken[POSTERS + WAITERS];

static int sum(void)
{
    int n = 0;
    for (int i = 0; i < POSTERS + WAITERS; i++)
        n += taken[i];
    return n;
}

static void *post(void *arg)
{
    static _Atomic int posted;
    for (int i = 0; i < rounds; i++) {
        for (int k = 0; k < WAITERS; k++)
            sem_post(&sem);
        posted += WAITERS;
        while (sum() < posted)
            sched_yield();
    }
    return arg;
}

static void *await(void *arg)
{
    _Atomic int *mine = arg;
    for (int i = 0; i < POSTERS * rounds; i++) {
        sem_wait(&sem);
        ++*mine;
    }
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t threads[POSTERS + WAITERS];
    rounds = argc > 1 ? atoi(argv[1]) : 10;
    sem_init(&sem, 0, 0);
    for (int i = 0; i < POSTERS + WAITERS; i++)
        pthread_create(&threads[i], NULL, i < POSTERS ? post : await, &taken[i]);
    for (int i = 0; i < POSTERS + WAITERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
