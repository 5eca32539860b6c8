/*
 * Of three threads one takes the lock by trylock before the waiter that was woken, and holds it in
 * guilty.
 */
#include "../../prog/program.h"
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds, free_now;
static void *waiter(void *arg)
{
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 40) {
        pthread_mutex_lock(&cache_lock);
        pthread_mutex_unlock(&cache_lock);
        usleep(500);
    }
    return arg;
}
__attribute__((noinline)) static void guilty(void)
{
    usleep(15000);
}
__attribute__((noinline)) static void innocent(void)
{
    usleep(15000);
}
static void *barger(void *arg)
{
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 40) {
        if (!__atomic_exchange_n(&free_now, 0, __ATOMIC_ACQ_REL))
            continue;
        while (pthread_mutex_trylock(&cache_lock) != 0)
            ;
        guilty();
        pthread_mutex_unlock(&cache_lock);
    }
    return arg;
}
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], NULL, waiter, NULL);
    pthread_create(&t[1], NULL, barger, NULL);
    for (; rounds < 40; __atomic_fetch_add(&rounds, 1, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&cache_lock);
        usleep(3000);
        __atomic_store_n(&free_now, 1, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&cache_lock);
        innocent();
    }
    return pthread_join(t[0], NULL) + pthread_join(t[1], NULL);
}
