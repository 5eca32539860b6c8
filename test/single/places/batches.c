/* A thread hands out batches and waits for the result of each. */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int batch, finished;
static void *worker(void *arg)
{
    for (int i = 1; i <= 10; i++) {
        pthread_mutex_lock(&mutex);
        while (batch < i)
            pthread_cond_wait(&go, &mutex);
        pthread_mutex_unlock(&mutex);
        usleep(5000);
        pthread_mutex_lock(&mutex);
        finished = i;
        pthread_cond_signal(&done);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, worker, 0);
    for (int i = 1; i <= 10; i++) {
        usleep(2000);
        pthread_mutex_lock(&mutex);
        batch = i;
        pthread_cond_signal(&go);
        while (finished < i)
            pthread_cond_wait(&done, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    return pthread_join(t, 0);
}
