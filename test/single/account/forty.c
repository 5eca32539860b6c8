/* Forty threads that compute until the recording ends, 1 s later. Prints their CPU time in ns. */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"
static volatile int done;
static _Atomic long cpu;
static pthread_barrier_t begun;
static void *busy(void *arg)
{
    struct timespec t;
    pthread_barrier_wait(&begun);
    while (!done)
        ;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    cpu += t.tv_sec * 1000000000 + t.tv_nsec;
    return arg;
}
int main(void)
{
    pthread_t t[40];
    pthread_barrier_init(&begun, 0, 41);
    for (int i = 0; i < 40; i++)
        pthread_create(&t[i], 0, busy, 0);
    pthread_barrier_wait(&begun);
    usleep(1000000);
    done = 1;
    gotrace_stop();
    for (int i = 0; i < 40; i++)
        pthread_join(t[i], 0);
    printf("%ld", cpu);
    return 0;
}
