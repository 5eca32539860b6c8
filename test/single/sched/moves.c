/* Threads that go to one CPU after the other and take its number as their name. */
#include "../../prog/program.h"
static void *move(void *arg)
{
    cpu_set_t all;
    int cpus[CPU_SETSIZE], n = 0;
    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all))
            cpus[n++] = i;
    compute_ns(50000000);
    for (int i = 0; i < 60; i++) {
        char name[16];
        int cpu = cpus[(i + (arg != 0)) % n];
        stay_on(cpu);
        snprintf(name, sizeof name, "cpu %d", cpu);
        pthread_setname_np(pthread_self(), name);
        compute_ns(5000000);
        if (i % 3 == 0)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, move, i % 2 ? t : NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
