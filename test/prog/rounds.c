/*
 * A thread that computes and calls into the kernel in turn: reads from a pipe and receives from a
 * socket that another thread fills after a known time. Prints the truth, a line for each hook:
 *   <hook> <ns from call to return, by our own clock, all together> <ns it had to wait>
 */
#include "truth.h"

enum { ROUNDS = 8, WAIT_MS = 20, COMPUTE_MS = 9 };

static int pipes[2], sockets[2];
static _Atomic int turn; /* odd: the reader is about to read */
static _Atomic int reader;

static void *fill(void *arg)
{
    for (int i = 0; i < 2 * ROUNDS; i++) {
        while (turn != 2 * i + 1)
            ;
        until_asleep(&reader);
        busy(WAIT_MS * MS);
        if (write(i < ROUNDS ? pipes[1] : sockets[1], "x", 1) != 1)
            return NULL;
        turn++;
    }
    return arg;
}

static uint64_t round_trip(int i)
{
    char byte;
    while (turn != 2 * i)
        ;
    busy(COMPUTE_MS * MS);
    turn++;
    uint64_t start = now();
    ssize_t n = i < ROUNDS ? read(pipes[0], &byte, 1) : recv(sockets[0], &byte, 1, 0);
    return n == 1 ? now() - start : 0;
}

static void *drain(void *arg)
{
    uint64_t *sums = arg;
    reader = tid();
    for (int i = 0; i < 2 * ROUNDS; i++)
        sums[i / ROUNDS] += round_trip(i);
    return NULL;
}

int main(void)
{
    pthread_t filler, drainer;
    uint64_t sums[2] = {0};
    if (pipe(pipes) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 1;
    pthread_create(&filler, NULL, fill, NULL);
    pthread_create(&drainer, NULL, drain, sums);
    pthread_join(filler, NULL);
    pthread_join(drainer, NULL);
    printf("read %llu %llu\n", (unsigned long long)sums[0], ROUNDS * WAIT_MS * 1000000ull);
    printf("recv %llu %llu\n", (unsigned long long)sums[1], ROUNDS * WAIT_MS * 1000000ull);
    return 0;
}
