/*
 * The first thread goes to the last of its CPUs, and to a real-time priority if it may, and then
 * makes another one. Prints of each thread that the program did not make: its policy, and whether
 * it may run wherever the process was started.
 */
#include "truth.h"

#include <dirent.h>

static cpu_set_t at_start;
static _Atomic int sleeper;

static void *sleeps(void *arg)
{
    sleeper = tid();
    pause();
    return arg;
}

static void place_self(void)
{
    struct sched_param priority = {10};
    int cpu = CPU_SETSIZE - 1;
    sched_getaffinity(0, sizeof at_start, &at_start);
    while (!CPU_ISSET(cpu, &at_start))
        cpu--;
    stay_on(cpu);
    sched_setscheduler(0, SCHED_RR, &priority);
}

static void print(int thread)
{
    cpu_set_t set;
    sched_getaffinity(thread, sizeof set, &set);
    printf("%d %d\n", sched_getscheduler(thread), CPU_EQUAL(&set, &at_start));
}

int main(void)
{
    pthread_t thread;
    struct dirent *entry;
    place_self();
    pthread_create(&thread, NULL, sleeps, NULL);
    while (!sleeper)
        sched_yield();
    DIR *tasks = opendir("/proc/self/task");
    while ((entry = readdir(tasks))) {
        int found = atoi(entry->d_name);
        if (found && found != tid() && found != sleeper)
            print(found);
    }
    return 0;
}
