/* A library whose constructor makes a thread, by CREATE; work has that thread sleep 5 ms. */
#include "../../prog/program.h"

static sem_t go, done;

static void *worker(void *arg)
{
    for (;;) {
        sem_wait(&go);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        sem_post(&done);
    }
    return arg;
}

__attribute__((constructor)) static void construct(void)
{
    pthread_t t;
    sem_init(&go, 0, 0);
    sem_init(&done, 0, 0);
    CREATE(&t, NULL, worker, NULL);
}

void work(void)
{
    sem_post(&go);
    sem_wait(&done);
}
