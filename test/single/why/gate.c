/*
 * Four threads take work from a queue. The one that waits for the next piece holds a mutex
 * meanwhile, which the others wait for, as with Rust's Mutex<Receiver>. A feeder hands out a piece
 * every 7 ms or more, and a thread works 5 ms on it: the feeder sets the pace.
 */
#include "../../prog/program.h"

enum { THREADS = 4, PIECES = 40, FEED_US = 7000, WORK_US = 5000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static sem_t queue;
static int left = PIECES;

static int receive(void)
{
    pthread_mutex_lock(&gate);
    int more = left > 0;
    while (more && sem_wait(&queue) != 0)
        ;
    left -= more;
    pthread_mutex_unlock(&gate);
    return more;
}

static void *work(void *arg)
{
    while (receive())
        usleep(WORK_US);
    return arg;
}

static void *feed(void *arg)
{
    for (int i = 0; i < PIECES; i++) {
        usleep(FEED_US);
        sem_post(&queue);
    }
    return arg;
}

int main(void)
{
    pthread_t thread[THREADS], feeder;
    sem_init(&queue, 0, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, NULL);
    pthread_create(&feeder, NULL, feed, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return pthread_join(feeder, NULL);
}
