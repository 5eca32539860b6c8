/* A child whose heap grows by 100 MiB in 100 ms, as its parent's did before. */
#include "../../prog/program.h"

static void *nothing(void *arg)
{
    return arg;
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Never waits: the shown status is complete. */
static void grow(void)
{
    for (int i = 0; i < 100; i++) {
        long before = now_ms();
        *(volatile char *)malloc(1 << 20) = 1;
        while (now_ms() <= before)
            ;
    }
}

int main(void)
{
    nanosleep(&(struct timespec){3, 0}, NULL);
    grow();
    if (fork() == 0) {
        RUN_THREADS(1, nothing, NULL);
        grow();
        _exit(0);
    }
    return wait(NULL) < 0;
}
