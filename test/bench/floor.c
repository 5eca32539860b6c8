/*
 * The least cost of each step of an event, measured alone: ns, the best of many batches. A line
 * each: clock   a look at the trace's clock              lock   one of our locks, taken and given
 * back line    a cache line that another CPU wrote last, where there is another
 */
#include "encoder/base/clock.h"
#include "encoder/base/futex.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { BATCH = 10000, BATCHES = 200 };

static struct gt_lock a_lock;
static _Atomic uint32_t line __attribute__((aligned(128)));

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void look(int i)
{
    uint64_t units = gt_clock_now();
    (void)i;
    __asm__ volatile("" : : "r"(units));
}

static void lock(int i)
{
    (void)i;
    gt_lock(&a_lock, GT_RANK_G);
    gt_unlock(&a_lock);
}

/* There and back are two transfers. */
static void transfer(int i)
{
    atomic_store_explicit(&line, (uint32_t)i * 2 + 1, memory_order_release);
    while (atomic_load_explicit(&line, memory_order_acquire) != (uint32_t)i * 2 + 2)
        ;
}

static void *answer(void *arg)
{
    for (;;) {
        uint32_t seen = atomic_load_explicit(&line, memory_order_acquire);
        if (seen & 1)
            atomic_store_explicit(&line, seen + 1, memory_order_release);
    }
    return arg;
}

static void measure(const char *name, void (*run)(int i), int per)
{
    double best = 1e18;
    for (int i = 0; i < BATCHES; i++) {
        double start = now();
        for (int k = 0; k < BATCH; k++)
            run(k);
        double ns = (now() - start) / BATCH / per;
        best = ns < best ? ns : best;
    }
    printf("%s %.1f\n", name, best);
}

static void pin(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(thread, sizeof set, &set);
}

int main(void)
{
    pthread_t thread;
    gt_clock_init();
    measure("clock", look, 1);
    measure("lock", lock, 1);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return 0;
    pin(pthread_self(), 0);
    pthread_create(&thread, NULL, answer, NULL);
    pin(thread, 1);
    measure("line", transfer, 2);
    return 0;
}
