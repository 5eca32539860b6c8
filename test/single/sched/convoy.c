/*
 * The holder of a mutex shares CPU 0 with two hogs, a waiter has CPU 1. Prints how long the holder
 * lacked the CPU while it held the mutex and the waiter waited for it. The hogs rest until the
 * waiter waits.
 */
#include "../../prog/program.h"
#include "queued.h"

enum { CONTENDED = 2 }; /* what glibc's nptl/lowlevellock.h calls locked, with waiters */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over, busy;
static void *hog(void *arg)
{
    stay_on(0);
    pthread_setname_np(pthread_self(), "hog");
    while (!over)
        if (!busy)
            usleep(200);
    return arg;
}
static void *holder(void *arg)
{
    long sum = 0;
    stay_on(0);
    pthread_setname_np(pthread_self(), "holder");
    usleep(50000);
    for (int i = 0; i < 30; i++) {
        pthread_mutex_lock(&mutex);
        while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != CONTENDED)
            usleep(200);
        long before = queued();
        busy = 1;
        compute_ns(6000000);
        sum += queued() - before;
        busy = 0;
        pthread_mutex_unlock(&mutex);
        usleep(3000);
    }
    over = 1;
    printf("%ld\n", sum);
    return arg;
}
static void *waiter(void *arg)
{
    stay_on(1);
    pthread_setname_np(pthread_self(), "waiter");
    while (!over) {
        usleep(200);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    pthread_t t[4];
    void *(*const run[])(void *) = {hog, hog, holder, waiter};
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, run[i], NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return 0;
}
