/*
 * Many workers share a queue, and each item in it wakes all of them. Prints how often a worker was
 * woken, and how often it found the queue empty then.
 */
#include "../../prog/program.h"

enum { WORKERS = 60, ITEMS = 1500, QUEUE = 4 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, space = PTHREAD_COND_INITIALIZER;
static int queued, wakes, vain;
static bool closed;

static bool take_item(void)
{
    pthread_mutex_lock(&queue_lock);
    while (!queued && !closed) {
        pthread_cond_wait(&more, &queue_lock);
        wakes++;
        vain += !queued && !closed;
    }
    bool taken = queued > 0;
    queued -= taken;
    pthread_cond_signal(&space);
    pthread_mutex_unlock(&queue_lock);
    return taken;
}

static void put_item(void)
{
    pthread_mutex_lock(&queue_lock);
    while (queued == QUEUE)
        pthread_cond_wait(&space, &queue_lock);
    queued++;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&queue_lock);
}

static void *worker(void *arg)
{
    volatile unsigned sum = 0;
    while (take_item()) {
        for (unsigned i = 0; i < 60000; i++)
            sum = sum * 1103515245u + i;
    }
    return arg;
}

int main(void)
{
    pthread_t thread[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&thread[i], NULL, worker, NULL);
    for (int i = 0; i < ITEMS; i++)
        put_item();
    pthread_mutex_lock(&queue_lock);
    closed = true;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&queue_lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(thread[i], NULL);
    printf("%d %d\n", wakes, vain);
}
