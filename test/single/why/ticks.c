/* A timer ends the waits of main, which hands each of 40 ticks to a thread through a pipe. */
#include <sys/timerfd.h>

#include "../../prog/program.h"

enum { TICKS = 40, TICK_NS = 5000000, WORK_US = 1000 };
static int ticks[2];

static void *work(void *arg)
{
    char byte;
    while (read(ticks[0], &byte, 1) == 1)
        usleep(WORK_US);
    return arg;
}

static int next_tick(int timer)
{
    uint64_t n;
    return read(timer, &n, sizeof n) != sizeof n;
}

int main(void)
{
    pthread_t thread;
    struct itimerspec period = {{0, TICK_NS}, {0, TICK_NS}};
    int timer = timerfd_create(CLOCK_MONOTONIC, 0), failed = pipe(ticks);
    pthread_create(&thread, NULL, work, NULL);
    failed |= timerfd_settime(timer, 0, &period, NULL);
    for (int i = 0; i < TICKS && !failed; i++)
        failed = next_tick(timer) || write(ticks[1], "x", 1) != 1;
    close(ticks[1]);
    pthread_join(thread, NULL);
    return failed;
}
