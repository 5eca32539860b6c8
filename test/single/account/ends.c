/* 400 threads, four at a time, each of which uses 2 ms of CPU time. */
#include "../../prog/program.h"
static void *burn(void *arg)
{
    struct timespec t = {0};
    while (t.tv_nsec < 2000000 && !t.tv_sec)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return arg;
}
int main(void)
{
    pthread_t t[4];
    for (int i = 0; i < 400; i++) {
        if (i >= 4)
            pthread_join(t[i % 4], 0);
        pthread_create(&t[i % 4], 0, burn, 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    return 0;
}
