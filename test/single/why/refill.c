/*
 * The loader holds `table` while it reads two bytes, the user needs `table` for an instant, and the
 * feeder makes each byte: it sleeps as long as it computes. Prints how long the user took, in ns,
 * and how often the loader took `table` twice before the user took it once.
 */
#include "../../prog/program.h"

enum { ROUNDS = 20, BYTES = 2, MS = 8, NS_PER_MS = 1000000 };

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile long entries;
static int refills;

static void compute(uint64_t ms)
{
    uint64_t end = cpu_ns() + ms * NS_PER_MS;
    while (cpu_ns() < end)
        entries++;
}

static __attribute__((noinline)) void refill(void)
{
    char byte;
    pthread_mutex_lock(&table);
    refills++;
    for (int i = 0; i < BYTES; i++)
        entries += read(ends[0], &byte, 1);
    pthread_mutex_unlock(&table);
}

static __attribute__((noinline)) void produce(void)
{
    usleep(MS * 1000);
    compute(MS);
    entries += write(ends[1], "x", 1);
}

static void *loader(void *arg)
{
    pthread_setname_np(pthread_self(), "loader");
    for (int i = 0; i < ROUNDS; i++) {
        refill();
        usleep(2000);
    }
    return arg;
}

static void *feeder(void *arg)
{
    for (int i = 0; i < ROUNDS * BYTES; i++)
        produce();
    return arg;
}

static void *user(void *arg)
{
    pthread_setname_np(pthread_self(), "user");
    uint64_t begin = now_ns();
    int seen = 0, overtaken = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&table);
        overtaken += refills > seen + 1;
        seen = refills;
        pthread_mutex_unlock(&table);
        compute(4);
    }
    printf("%llu %d\n", (unsigned long long)(now_ns() - begin), overtaken);
    return arg;
}

int main(void)
{
    void *(*const routine[])(void *) = {loader, feeder, user};
    pthread_t thread[3];
    if (pipe(ends))
        return 1;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, routine[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}
