/* Six threads share two connections, whose semaphore is a variable of main. */
#include "../../prog/program.h"

enum { THREADS = 6, CONNECTIONS = 2, TIMES = 12 };

static void __attribute__((noinline)) check_out(sem_t *idle)
{
    while (sem_wait(idle) != 0)
        ;
}

static void *serve(void *idle)
{
    for (int i = 0; i < TIMES; i++) {
        check_out(idle);
        usleep(5000);
        sem_post(idle);
        usleep(2000);
    }
    return NULL;
}

int main(void)
{
    sem_t idle;
    sem_init(&idle, 0, CONNECTIONS);
    RUN_THREADS(THREADS, serve, &idle);
    return 0;
}
