/*
 * A library that is loaded behind ours. In its destructor an urgent thread takes the ending
 * thread's CPU for longer than the hold of other threads lasts by the clock. Says whether a thread
 * that sleeps a millisecond at a time, on another CPU, went on meanwhile.
 */
#include "../../prog/truth.h"

#include <linux/futex.h>
#include <sched.h>

#define TAKEN_NS (300 * MS)

static _Atomic uint32_t freed, taken;
static atomic_int ready;
static atomic_bool went_on;
static int cpus[2];

static void *take_cpu(void *arg)
{
    stay_on(cpus[0]);
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}) != 0)
        _exit(77);
    ready++;
    while (!freed)
        RAW(SYS_futex, &freed, FUTEX_WAIT, 0, NULL);
    for (uint64_t end = now_ns() + TAKEN_NS; now_ns() < end;)
        ;
    taken = 1;
    for (;;)
        RAW(SYS_futex, &taken, FUTEX_WAIT, 1, NULL);
    return arg;
}

static void *remain(void *arg)
{
    stay_on(cpus[1]);
    ready++;
    while (!freed)
        usleep(1000);
    went_on = true;
    return arg;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    cpu_set_t set;
    int n = 0;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[n++] = cpu;
    if (n < 2)
        _exit(77);
    pthread_create(&thread, NULL, take_cpu, NULL);
    pthread_create(&thread, NULL, remain, NULL);
    while (ready < 2)
        usleep(1000);
}

__attribute__((destructor)) static void end(void)
{
    freed = 1;
    stay_on(cpus[0]);
    RAW(SYS_futex, &freed, FUTEX_WAKE, 1, NULL);
    while (!taken)
        ;
    dprintf(STDERR_FILENO, went_on ? "went on\n" : "was held\n");
}
