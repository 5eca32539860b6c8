/*
 * Threads take turns with a semaphore that serves as a lock, and sleep with it. Prints how long
 * that took, in ns. With an argument, they sleep half as long.
 */
#include "../../prog/program.h"

enum { THREADS = 3, TIMES = 4, USUAL_US = 20000, APART_US = 4000 };

static sem_t lock;
static useconds_t length = USUAL_US;

static void __attribute__((noinline)) fetch(void)
{
    usleep(length);
}

static void *work(void *arg)
{
    for (int i = 0; i < TIMES; i++) {
        sem_wait(&lock);
        fetch();
        sem_post(&lock);
        usleep(APART_US);
    }
    return arg;
}

int main(int argc, char **argv)
{
    length = argv[1] ? USUAL_US / 2 : USUAL_US;
    sem_init(&lock, 0, 1);
    long long begin = now_ns();
    RUN_THREADS(THREADS, work, NULL);
    printf("%lld\n", now_ns() - begin);
    return argc < 1;
}
