/* As many events as can be: storm <threads> <seconds>. Every yield is two of them. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static time_t deadline;

static void *yield(void *arg)
{
    while (time(NULL) < deadline) {
        for (int i = 0; i < 1000; i++)
            sched_yield();
    }
    return arg;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4;
    pthread_t thread[n];
    deadline = time(NULL) + (argc > 2 ? atoi(argv[2]) : 2);
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, yield, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
