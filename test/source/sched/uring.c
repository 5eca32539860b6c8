/*
 * A thread waits 20 times for a read by io_uring. Another thread writes 50 ms after each read was
 * submitted. Prints how long the first thread waited, by its own clock, and for how much of that it
 * could run and had no CPU, in ns.
 */
#include "../../single/sched/queued.h"
#include <liburing.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static int ends[2];
static sem_t submitted;
static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
static void *writer(void *arg)
{
    for (int i = 0; i < 20; i++) {
        sem_wait(&submitted);
        usleep(50000);
        if (write(ends[1], "x", 1) != 1)
            _exit(9);
    }
    return arg;
}
static void *waiter(void *arg)
{
    struct io_uring ring;
    struct io_uring_cqe *done;
    char byte;
    long waited = 0, lacked = 0;
    if (io_uring_queue_init(8, &ring, 0))
        _exit(77);
    for (int i = 0; i < 20; i++) {
        io_uring_prep_read(io_uring_get_sqe(&ring), ends[0], &byte, 1, 0);
        io_uring_submit(&ring);
        sem_post(&submitted);
        long since = now(), queue = queued();
        if (io_uring_wait_cqe(&ring, &done) || done->res != 1)
            _exit(9);
        lacked += queued() - queue;
        waited += now() - since;
        io_uring_cqe_seen(&ring, done);
    }
    printf("%ld %ld\n", waited, lacked);
    return arg;
}
int main(void)
{
    pthread_t t[2];
    if (pipe(ends) || sem_init(&submitted, 0, 0))
        return 9;
    pthread_create(&t[0], NULL, waiter, NULL);
    pthread_create(&t[1], NULL, writer, NULL);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return 0;
}
