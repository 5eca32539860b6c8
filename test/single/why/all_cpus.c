/*
 * A pool with as many threads as the machine has CPUs. Its threads compute 2 ms for each of 100
 * pieces apiece, and main waits for room in their queue. Prints the CPU time in ns, and how many
 * CPUs that are: one thread more could not compute beside the others.
 */
#include "../../prog/program.h"

#include <inttypes.h>

enum { PIECES = 100, ROOM = 4 };

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int queued;
static bool over;

__attribute__((noinline)) static void put_piece(void)
{
    pthread_mutex_lock(&queue_lock);
    while (queued == ROOM)
        pthread_cond_wait(&emptied, &queue_lock);
    queued++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue_lock);
}

static bool take_piece(void)
{
    pthread_mutex_lock(&queue_lock);
    while (!queued && !over)
        pthread_cond_wait(&filled, &queue_lock);
    bool taken = queued > 0;
    queued -= taken;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&queue_lock);
    return taken;
}

static void *computing_worker(void *arg)
{
    while (take_piece())
        compute_ns(2000000);
    return arg;
}

int main(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t worker[cpus];
    for (long i = 0; i < cpus; i++) {
        if (pthread_create(&worker[i], NULL, computing_worker, NULL) != 0)
            abort();
    }
    for (long i = 0; i < PIECES * cpus; i++)
        put_piece();
    pthread_mutex_lock(&queue_lock);
    over = true;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&queue_lock);
    for (long i = 0; i < cpus; i++)
        pthread_join(worker[i], NULL);
    printf("%" PRIu64 " %ld\n", clock_ns(CLOCK_PROCESS_CPUTIME_ID), cpus);
    return 0;
}
