/* A thread made by another one computes for half a second, while the main thread waits. */
#include "../../prog/program.h"
static volatile unsigned long sink;
static void *burner(void *arg)
{
    struct timespec t;
    do {
        for (int i = 0; i < 100000; i++)
            sink += i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_nsec < 500000000);
    return arg;
}
static void *maker(void *arg)
{
    RUN_THREADS(1, burner, NULL);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, maker, 0);
    return pthread_join(t, 0);
}
