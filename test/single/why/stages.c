/*
 * Four stages of the same code, one behind the other, each with a queue of four pieces before it.
 * One stage sleeps five times as long as each of the others. Prints its thread's id.
 */
#include "../../prog/program.h"
enum { PIECES = 200, ROOM = 4, STAGES = 4, SLOW = 2, SLOW_US = 2000, USUAL_US = 400 };
struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t more, room;
    int n, at, item[ROOM];
};
static struct queue queues[STAGES + 1];
static void push(struct queue *q, int item)
{
    pthread_mutex_lock(&q->mutex);
    while (q->n == ROOM)
        pthread_cond_wait(&q->room, &q->mutex);
    q->item[(q->at + q->n++) % ROOM] = item;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->mutex);
}
static int pop(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    while (!q->n)
        pthread_cond_wait(&q->more, &q->mutex);
    int item = q->item[q->at];
    q->at = (q->at + 1) % ROOM;
    q->n--;
    pthread_cond_signal(&q->room);
    pthread_mutex_unlock(&q->mutex);
    return item;
}
static void work(long stage)
{
    usleep(stage == SLOW ? SLOW_US : USUAL_US);
}
static void *run(void *arg)
{
    long stage = (long)arg;
    int item;
    if (stage == SLOW)
        printf("%d\n", gettid());
    do {
        if ((item = pop(&queues[stage])))
            work(stage);
        push(&queues[stage + 1], item);
    } while (item);
    return NULL;
}
static void *feed(void *arg)
{
    for (int i = 1; i <= PIECES; i++)
        push(&queues[0], i);
    push(&queues[0], 0);
    return arg;
}
int main(void)
{
    pthread_t stages[STAGES], feeder;
    for (int i = 0; i <= STAGES; i++) {
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].more, NULL);
        pthread_cond_init(&queues[i].room, NULL);
    }
    for (long i = 0; i < STAGES; i++)
        pthread_create(&stages[i], NULL, run, (void *)i);
    pthread_create(&feeder, NULL, feed, NULL);
    while (pop(&queues[STAGES]))
        ;
    for (int i = 0; i < STAGES; i++)
        pthread_join(stages[i], NULL);
    pthread_join(feeder, NULL);
    return 0;
}
