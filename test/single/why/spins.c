/*
 * Threads that wait on a CPU for what another thread does, each way in a mode of its own: `spins
 * MODE` prints how long the wait took in all, how much of that was on a CPU, in ms, and how often
 * the waiting threads looked. `computes` and `gives_way` only look alike: no thread waits.
 */
#include "../../prog/program.h"

enum { MS = 1000000 };

static atomic_int flag, lock, turns;
static _Atomic uint64_t waited, used, looks;
static _Atomic uint32_t sum;

__attribute__((noinline)) static void crunch(uint32_t n)
{
    uint32_t s = 1;
    for (uint32_t i = 0; i < n; i++)
        s = s * 1664525u + 1013904223u;
    sum += s;
}

/* Computes for so long of the thread's CPU time, and hardly ever reads the clock. */
static void compute(uint64_t ns)
{
    uint64_t end = cpu_ns() + ns;
    while (cpu_ns() < end)
        crunch(400000);
}

static void sleep_for(long ns)
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

#define WAIT(wait)                            \
    do {                                      \
        uint64_t at_ = now_ns();              \
        uint64_t cpu_ = cpu_ns(), looks_ = 0; \
        wait;                                 \
        waited += now_ns() - at_;             \
        used += cpu_ns() - cpu_;              \
        looks += looks_;                      \
    } while (0)

__attribute__((noinline)) static uint64_t yield_until(int want)
{
    uint64_t n = 0;
    for (; flag < want; n++)
        sched_yield();
    return n;
}

__attribute__((noinline)) static void spin_until_set(void)
{
    while (!flag)
        ;
}

__attribute__((noinline)) static uint64_t back_off_until(int want)
{
    uint64_t n = 0;
    for (; flag < want; n++)
        usleep(50);
    return n;
}

__attribute__((noinline)) static void spin_lock(void)
{
    while (atomic_exchange(&lock, 1))
        ;
}

static void *work_ten_times(void *arg)
{
    for (int i = 1; i <= 10; i++) {
        compute(30 * MS);
        flag = i;
    }
    return arg;
}

static void *work_once(void *arg)
{
    compute(300 * MS);
    flag = 1;
    return arg;
}

static void *use_lock(void *arg)
{
    for (int i = 0; i < 30; i++) {
        WAIT(spin_lock());
        sleep_for(5 * MS); /* held */
        turns++;
        lock = 0;
        compute(MS / 2);
    }
    return arg;
}

static void wait_ten_times(bool yields)
{
    for (int i = 1; i <= 10; i++)
        WAIT(looks_ = yields ? yield_until(i) : back_off_until(i));
}

static void give_way(void)
{
    for (int i = 0; i < 600; i++) {
        compute(MS / 2);
        sched_yield();
    }
}

static void tell(void)
{
    printf("%.1f %.1f %llu\n", (double)waited / MS, (double)used / MS, (unsigned long long)looks);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    pthread_t thread[2];
    bool locks = strcmp(mode, "exchange") == 0, once = strcmp(mode, "flag") == 0;
    int n = locks ? 2 : 1;
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL,
                       locks  ? use_lock
                       : once ? work_once
                              : work_ten_times,
                       NULL);
    if (once)
        WAIT(spin_until_set());
    if (strcmp(mode, "yields") == 0 || strcmp(mode, "backs_off") == 0)
        wait_ten_times(*mode == 'y');
    if (strcmp(mode, "computes") == 0)
        compute(300 * MS);
    if (strcmp(mode, "gives_way") == 0)
        give_way();
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    tell();
    return 0;
}
