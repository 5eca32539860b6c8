/*
 * One operation again and again; prints the median of 30 batches of 10 ms, in ns an operation,
 * and how many operations that were.
 * BENCH_BATCHES: so many instead. A name that ends with a number of ns does its work that long, by
 * the clock's measure before it begins, with the lock held.
 * micro <operation> [depth [times]]: the stack below it is `depth` frames deep (descend.h); with
 * `times` it is made so often, untimed. A second thread always exists, so that libc does not take
 * its single-threaded ways. Ping-pong partners share a CPU: across two their times vary tenfold.
 */
#include "descend.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 30, BATCH_NS = 10000000, PARTNERS_MAX = 15 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn, zero, there[2], back[2];

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

/* Operations --------------------------------------------------------------------------------- */

static void lock(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static long turns; /* of what is done with the lock held */

static void spin(long n)
{
    for (volatile long i = 0; i < n; i++)
        ;
}

static void set_turns(double ns)
{
    enum { MANY = 1000000 };
    uint64_t start = now();
    spin(MANY);
    turns = (long)(ns * MANY / (double)(now() - start));
}

static void section(void)
{
    pthread_mutex_lock(&mutex);
    spin(turns);
    pthread_mutex_unlock(&mutex);
}

/* A lock that a thread has waited for: its holds are logged. */
static void hot(void)
{
    static int heated;
    pthread_mutex_lock(&mutex);
    if (!heated) {
        heated = 1;
        __atomic_store_n(&turn, 1, __ATOMIC_RELAXED); /* the partner wants it now */
        usleep(20000);
    }
    pthread_mutex_unlock(&mutex);
}

static void heap(void)
{
    void *volatile p = malloc(64);
    free(p);
}

static void look(void)
{
    if (poll(NULL, 0, 0) != 0)
        abort();
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

static void yield(void)
{
    sched_yield();
}

/* The other threads -------------------------------------------------------------------------- */

struct partner {
    void (*run)(void);
    _Atomic uint64_t done;
    char padding[64];
};

static void *sleeper(void *arg)
{
    pause();
    return arg;
}

static void *hot_partner(void *arg)
{
    while (!__atomic_load_n(&turn, __ATOMIC_RELAXED))
        usleep(1000);
    lock();
    return sleeper(arg);
}

static void *cond_partner(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (turn == 0)
            pthread_cond_wait(&cond, &mutex);
        turn = 0;
        pthread_cond_signal(&cond);
    }
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

/* Does the same, and counts. */
static void *rival(void *arg)
{
    struct partner *self = arg;
    for (;;) {
        self->run();
        __atomic_fetch_add(&self->done, 1, __ATOMIC_RELAXED);
    }
    return arg;
}

static const struct operation {
    const char *name;
    void (*run)(void);
    void *(*partner)(void *);
    int partners;
    int ns; /* of a section */
} operations[] = {
    {"lock", lock, sleeper, 1},
    {"lock2", lock, rival, 1},
    {"lock4", lock, rival, 3},
    {"lock16", lock, rival, 15},
    {"lock2-200", section, rival, 1, 200},
    {"lock4-200", section, rival, 3, 200},
    {"lock16-200", section, rival, 15, 200},
    {"lock2-1000", section, rival, 1, 1000},
    {"lock4-1000", section, rival, 3, 1000},
    {"lock16-1000", section, rival, 15, 1000},
    {"hot", hot, hot_partner, 1},
    {"malloc", heap, sleeper, 1},
    {"malloc2", heap, rival, 1},
    {"read", read_byte, sleeper, 1},
    {"look", look, sleeper, 1},
    {"yield", yield, sleeper, 1},
    {"cond", cond_pingpong, cond_partner, 1},
    {"pipe", pipe_pingpong, pipe_partner, 1},
    {"create", create_join, sleeper, 1},
};

/* Measuring ---------------------------------------------------------------------------------- */

static struct partner partners[PARTNERS_MAX];

static uint64_t done_by_partners(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < PARTNERS_MAX; i++)
        sum += __atomic_load_n(&partners[i].done, __ATOMIC_RELAXED);
    return sum;
}

/* Operations at a time, so that reading the clock in between does not count. */
static long grain(const struct operation *op)
{
    for (long n = 1;; n *= 2) {
        uint64_t start = now();
        for (long i = 0; i < n; i++)
            op->run();
        if (now() - start > 20000)
            return n;
    }
}

static double batch(const struct operation *op, long n, uint64_t *sum)
{
    uint64_t done = 0, others = done_by_partners(), start = now(), end;
    do {
        for (long i = 0; i < n; i++)
            op->run();
        done += (uint64_t)n;
    } while ((end = now()) - start < BATCH_NS);
    done += done_by_partners() - others;
    *sum += done;
    return (double)(end - start) / (double)done;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const void *operation)
{
    const struct operation *op = operation;
    double ns[BATCHES];
    uint64_t sum = 0;
    const char *wanted = getenv("BENCH_BATCHES");
    int batches = wanted ? atoi(wanted) : BATCHES;
    batches = batches < 1 || batches > BATCHES ? BATCHES : batches;
    op->run();
    long n = grain(op);
    for (int i = 0; i < batches; i++)
        ns[i] = batch(op, n, &sum);
    qsort(ns, (size_t)batches, sizeof *ns, by_value);
    printf("%.2f %llu\n", ns[batches / 2], (unsigned long long)sum);
}

static long times;

/*
 * Where a generation closes in the middle of an operation its stack is looked for: rare, and a
 * small thing once the frames are known.
 */
static void repeat(const void *operation)
{
    const struct operation *op = operation;
    usleep(1);
    for (long i = 0; i < times; i++)
        op->run();
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
    const struct operation *op = &operations[k];
    if (op->partner != rival)
        pin();
    set_turns(op->ns);
    zero = open("/dev/zero", O_RDONLY);
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    for (int i = 0; i < op->partners; i++) {
        partners[i].run = op->run;
        pthread_create(&thread, NULL, op->partner, &partners[i]);
    }
    times = argc > 3 ? atol(argv[3]) : 0;
    descend(argc > 2 ? atoi(argv[2]) : 1, times ? repeat : measure, op);
    return 0;
}
