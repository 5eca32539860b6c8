/*
 * Readers hold a read-write lock for most of their time, and a writer waits until none of them has
 * it, for most of the time. Prints how long the writer waited, and how long all took, in ms; and
 * how often a reader got the lock while the writer waited for it. It ends with the writer, not with
 * the readers.
 */
#include "../../prog/program.h"

/* ROUND_MS: longer than a reader takes to come back. */
enum { READERS = 3, ROUND_MS = 8, LONG_MS = 150, MANY = 30 };

static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool waits;
static atomic_int passed;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static __attribute__((noinline)) void nap(long us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

static __attribute__((noinline)) void look_up(int round)
{
    pthread_rwlock_rdlock(&table_lock);
    passed += waits;
    nap(3000 + 1000 * (round % 3));
    pthread_rwlock_unlock(&table_lock);
}

static void *reader(void *arg)
{
    for (int round = (int)(size_t)arg;; round++) {
        look_up(round);
        nap(1000 + 500 * (round % 2));
    }
    return NULL;
}

static __attribute__((noinline)) double update(void)
{
    double from = now();
    waits = true;
    pthread_rwlock_wrlock(&table_lock);
    waits = false;
    pthread_rwlock_unlock(&table_lock);
    return now() - from;
}

int main(void)
{
    pthread_t thread;
    double from = now(), waited = 0, lengthy = 0;
    for (size_t i = 0; i < READERS; i++)
        pthread_create(&thread, NULL, reader, (void *)i);
    while (lengthy < LONG_MS || lengthy < 0.6 * (now() - from) || passed < MANY) {
        nap(2000);
        double its = update();
        waited += its;
        lengthy += its > ROUND_MS ? its : 0;
    }
    printf("%.1f %.1f %d\n", waited, now() - from, passed);
}
