/* Twenty threads that hold buffers, and a child that has one thread. */
#include "../../prog/program.h"
static pthread_barrier_t all;
static void *hold(void *arg)
{
    pthread_barrier_wait(&all);
    pause();
    return arg;
}
static void *work(void *arg)
{
    for (int i = 0; i < 30000; i++)
        sched_yield();
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_barrier_init(&all, NULL, 21);
    for (int i = 0; i < 20; i++)
        pthread_create(&t, NULL, hold, NULL);
    pthread_barrier_wait(&all);
    pid_t child = fork();
    if (!child) {
        RUN_THREADS(1, work, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    _exit(0);
}
