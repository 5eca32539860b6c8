/*
 * A thread for each state: it runs, sleeps, waits for a lock, waits in a call. Each prints how
 * long it was there, and its CPU time.
 */
#include "../../prog/program.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];

static void runs(void)
{
    while (cpu_ns() < 200000000)
        ;
}

static void sleeps(void)
{
    nanosleep(&(struct timespec){0, 250000000}, NULL);
}
static void waits(void)
{
    pthread_mutex_lock(&lock);
}
static void calls(void)
{
    char c;
    if (read(ends[0], &c, 1) != 1)
        perror("read");
}

static struct life {
    const char *name;
    void (*does)(void);
    pthread_t id;
} lives[] = {{"runs", runs, 0}, {"sleeps", sleeps, 0}, {"waits", waits, 0}, {"calls", calls, 0}};

static void say(const char *name, unsigned long from, unsigned long used)
{
    printf("%s %d %lu %lu\n", name, gettid(), now_ns() - from, cpu_ns() - used);
}

static void *live(void *arg)
{
    const struct life *life = arg;
    unsigned long from = now_ns(), used = cpu_ns();
    life->does();
    say(life->name, from, used);
    return NULL;
}

int main(void)
{
    unsigned long from = now_ns(), used = cpu_ns();
    if (pipe(ends))
        return 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 4; i++)
        pthread_create(&lives[i].id, NULL, live, &lives[i]);
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    pthread_mutex_unlock(&lock);
    if (write(ends[1], "x", 1) != 1)
        return 1;
    for (int i = 0; i < 4; i++)
        pthread_join(lives[i].id, NULL);
    say("main", from, used);
    return 0;
}
