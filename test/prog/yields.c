/* yields T N: T threads call sched_yield N times each: two events a call if every yield is written
 * (GOTRACE_SYSCALL_MIN=0). */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static long calls;

static void *yield(void *arg)
{
    for (long i = 0; i < calls; i++)
        sched_yield();
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t thread[64];
    int n = argc > 2 ? atoi(argv[1]) : 8;
    calls = argc > 2 ? atol(argv[2]) : 1000;
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, yield, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
