/*
 * An event loop that shares one CPU with a thread that computes: turns MODE.
 *
 *   without  it also waits for room to write, of which there is always some
 *   yields   as without; now and then it gives the CPU away between two calls
 *   rests    it waits for input only
 *   with     it waits for input only, which is always there: it computes for each byte
 *
 * Prints how often the loop turned, and how many bytes it read.
 */
#include "../../prog/program.h"

enum { PIECES = 20, FLOOD = 4000, TURNS_BETWEEN_YIELDS = 4000 };
static int pair[2];
static atomic_bool done;
static bool writes, floods, yields;
static long turns, bytes;
static volatile unsigned sum;

static __attribute__((noinline)) void compute(int n)
{
    for (int i = 0; i < n; i++)
        sum = sum * 1103515245u + 12345u + (sum >> 7);
}

static void *run_loop(void *arg)
{
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0u)};
    epoll_ctl(poll, EPOLL_CTL_ADD, pair[0], &event);
    for (char byte; !done; turns++) {
        if (epoll_wait(poll, &event, 1, 20) == 1 && (event.events & EPOLLIN) &&
            read(pair[0], &byte, 1) == 1) {
            bytes++;
            compute(floods ? 20000 : 100);
        }
        if (yields && turns % TURNS_BETWEEN_YIELDS == 0)
            sched_yield();
    }
    close(poll);
    return arg;
}

static void *work(void *arg)
{
    for (int i = 0; i < PIECES; i++) {
        compute(4000000);
        if (write(pair[1], "x", 1) != 1)
            _exit(1);
    }
    return arg;
}

int main(int argc, char **argv)
{
    static char flood[FLOOD];
    cpu_set_t one;
    int cpu = 0;
    pthread_t loop;
    yields = argc > 1 && !strcmp(argv[1], "yields");
    writes = yields || (argc > 1 && !strcmp(argv[1], "without"));
    floods = argc > 1 && !strcmp(argv[1], "with");
    if (sched_getaffinity(0, sizeof one, &one) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    while (!CPU_ISSET(cpu, &one))
        cpu++;
    stay_on(cpu);
    if (floods && write(pair[1], flood, FLOOD) != FLOOD)
        return 1;
    pthread_create(&loop, NULL, run_loop, NULL);
    RUN_THREADS(1, work, NULL);
    done = true;
    pthread_join(loop, NULL);
    printf("%ld %ld\n", turns, bytes);
    return 0;
}
