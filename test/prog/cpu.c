/*
 * Threads that use the CPU in functions of known shares, and one that does not: cpu [seconds].
 * Prints "FUNCTION TID NS": the CPU time spent there; of the sleeper only "sleeper TID 0".
 */
#include "program.h"

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint64_t sink;
static double seconds = 1;

/* About 100 us each; different, so that no linker folds them. */
NOINLINE static void three_quarters(void)
{
    uint64_t x = sink;
    for (int i = 0; i < 100000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = x;
}

NOINLINE static void one_quarter(void)
{
    uint64_t x = sink;
    for (int i = 0; i < 100000; i++)
        x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    sink = x;
}

NOINLINE static void descend(int n, void (*leaf)(void))
{
    if (n)
        descend(n - 1, leaf);
    else
        leaf();
    sink++;
}

/* At random: in turns they would keep time with the kernel's clock, which takes the samples. */
static int next_leaf(const uint64_t spent[2], unsigned *seed)
{
    int owed = spent[0] > 3 * spent[1];
    return rand_r(seed) % 8 < (owed ? 6 : 1);
}

static void *burner(void *unused)
{
    static _Atomic unsigned burners;
    unsigned seed = ++burners;
    uint64_t spent[2] = {0, 0}, end = cpu_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t now = cpu_ns(), then; now < end; now = then) {
        int which = next_leaf(spent, &seed);
        descend(5, which ? one_quarter : three_quarters);
        then = cpu_ns();
        spent[which] += then - now;
    }
    printf("three_quarters\t%d\t%llu\none_quarter\t%d\t%llu\n", gettid(),
           (unsigned long long)spent[0], gettid(), (unsigned long long)spent[1]);
    return unused;
}

static void *sleeper(void *unused)
{
    for (int i = 0; i < 10; i++)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    printf("sleeper\t%d\t0\n", gettid());
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread[3];
    if (argc > 1)
        seconds = atof(argv[1]);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, i ? burner : sleeper, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    burner(NULL);
    return 0;
}
