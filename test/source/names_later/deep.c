/* Waits below 30 calls, each of which has 4 others inlined: 30 addresses are 150 frames. */
#include <semaphore.h>
#include <time.h>

static sem_t never;

static __attribute__((noinline)) void wait_below(int calls);

static inline __attribute__((always_inline)) void fourth(int calls)
{
    struct timespec past = {0};
    if (calls)
        wait_below(calls - 1);
    else
        sem_timedwait(&never, &past);
    __asm__ volatile("");
}

static inline __attribute__((always_inline)) void third(int calls)
{
    fourth(calls);
}

static inline __attribute__((always_inline)) void second(int calls)
{
    third(calls);
}

static inline __attribute__((always_inline)) void first(int calls)
{
    second(calls);
}

static void wait_below(int calls)
{
    first(calls);
    __asm__ volatile("");
}

int main(void)
{
    sem_init(&never, 0, 0);
    wait_below(30 - 1);
    return 0;
}
