/*
 * Six threads come to render() together, round after round, and two of them at a time may be in it:
 * a round takes three times TAKES_US. The first two do not have to wait.
 */
#include "../../prog/program.h"

enum { THREADS = 6, ROUNDS = 12, SLOTS = 2, TAKES_US = 8000 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slot_free = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t together;
static int slots;

static void __attribute__((noinline)) render(void)
{
    pthread_mutex_lock(&m);
    while (!slots)
        pthread_cond_wait(&slot_free, &m);
    slots--;
    pthread_mutex_unlock(&m);
    usleep(TAKES_US);
    pthread_mutex_lock(&m);
    slots++;
    pthread_mutex_unlock(&m);
    pthread_cond_signal(&slot_free);
}

static void *work(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&together);
        render();
    }
    return arg;
}

int main(void)
{
    slots = SLOTS;
    pthread_barrier_init(&together, NULL, THREADS);
    RUN_THREADS(THREADS, work, NULL);
    return 0;
}
