/*
 * One operation again and again; prints ns per operation, of the best of 20 batches: what else the
 * machine does makes times longer, never shorter. micro <operation> [depth [times]]: the stack
 * below it is `depth` frames deep. A second thread exists, so that libc does not take its
 * single-threaded ways. Ping-pong partners share a CPU: across two their times vary tenfold.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
enum { BATCHES = 20 };
static double best = 1e18;
static int turn, over, zero, there[2], back[2];

static uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *nothing(void *arg)
{
    return arg;
}

static void *cond_partner(void *arg)
{
    pthread_mutex_lock(&mutex);
    while (!over) {
        while (!over && turn == 0)
            pthread_cond_wait(&cond, &mutex);
        turn = 0;
        pthread_cond_signal(&cond);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *pipe_partner(void *arg)
{
    char c;
    while (read(there[0], &c, 1) == 1)
        if (write(back[1], &c, 1) != 1)
            abort();
    return arg;
}

static void *sleeper(void *arg)
{
    pause();
    return arg;
}

static void lock(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void heap(void)
{
    void *volatile p = malloc(64);
    free(p);
}

static void read_byte(void)
{
    char c;
    if (read(zero, &c, 1) != 1)
        abort();
}

static void cond_pingpong(void)
{
    pthread_mutex_lock(&mutex);
    turn = 1;
    pthread_cond_signal(&cond);
    while (turn == 1)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void pipe_pingpong(void)
{
    char c = 0;
    if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
        abort();
}

static void create_join(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
}

static void event(void)
{
    sched_yield();
}

static const struct operation {
    const char *name;
    void (*run)(void);
    void *(*partner)(void *);
    long times;
} operations[] = {
    {"lock", lock, sleeper, 20000000},
    {"malloc", heap, sleeper, 20000000},
    {"read", read_byte, sleeper, 1000000},
    {"yield", event, sleeper, 300000},
    {"cond", cond_pingpong, cond_partner, 50000},
    {"pipe", pipe_pingpong, pipe_partner, 50000},
    {"create", create_join, sleeper, 10000},
};

/* Recursion that no optimizer takes away. */
__attribute__((noinline)) static void descend(int depth, const struct operation *op, long times)
{
    if (depth > 0) {
        descend(depth - 1, op, times);
        __asm__ volatile("");
        return;
    }
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t start = now();
        for (long i = 0; i < times; i++)
            op->run();
        double ns = (double)(now() - start) / (double)times;
        best = ns < best ? ns : best;
    }
}

static void pin(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    size_t n = sizeof operations / sizeof *operations, k = 0;
    while (k < n && argc > 1 && strcmp(argv[1], operations[k].name) != 0)
        k++;
    if (argc < 2 || k == n)
        return 2;
    pin();
    zero = open("/dev/zero", O_RDONLY);
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    pthread_create(&thread, NULL, operations[k].partner, NULL);
    long times = argc > 3 ? atol(argv[3]) : operations[k].times;
    descend(argc > 2 ? atoi(argv[2]) : 0, &operations[k], times < BATCHES ? 1 : times / BATCHES);
    printf("%.1f\n", best);
    fflush(stdout);
    _exit(0);
}
