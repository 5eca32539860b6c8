/* Threads that pass a turn around until the program is killed. */
#include "program.h"

enum { THREADS = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;

static void *run(void *arg)
{
    int me = (int)(long)arg;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (turn != me)
            pthread_cond_wait(&cond, &mutex);
        turn = (me + 1) % THREADS;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

int main(void)
{
    for (long i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, run, (void *)i);
    }
    pause();
    return 0;
}
