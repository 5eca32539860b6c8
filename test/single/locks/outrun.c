/*
 * The waiter sleeps until main unlocks; then the barger, which has held the lock briefly 200 times
 * before, is faster, and commits for 10 ms with the lock, while the waiter sleeps again. Prints how
 * long each of ten such commits held the lock at least. A round in which the waiter was faster, or
 * awake at the end, does not count.
 */
#include "../../prog/program.h"

enum { COMMITS = 10, BRIEF = 200, LONG_NS = 10000000 };
enum { BEFORE, HELD, GIVEN_UP, OVER };

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t round_begins, round_ends;
static _Atomic int state;
static int outrun; /* changes between the two barriers */

static int word(void)
{
    return __atomic_load_n(&cache_lock.__data.__lock, __ATOMIC_ACQUIRE);
}

static void spend(uint64_t ns)
{
    for (uint64_t end = now_ns() + ns; now_ns() < end;)
        ;
}

__attribute__((noinline)) static void commit(void)
{
    pthread_mutex_lock(&cache_lock);
    bool first = state == GIVEN_UP;
    uint64_t begin = now_ns();
    spend(LONG_NS);
    if (first && word() == 2) {
        outrun++;
        printf("%llu\n", (unsigned long long)(now_ns() - begin));
    }
    pthread_mutex_unlock(&cache_lock);
}

static void *barger(void *arg)
{
    while (outrun < COMMITS) {
        for (int j = 0; j < BRIEF; j++) {
            pthread_mutex_lock(&cache_lock);
            pthread_mutex_unlock(&cache_lock);
        }
        pthread_barrier_wait(&round_begins);
        while (state == BEFORE || word())
            ;
        commit();
        pthread_barrier_wait(&round_ends);
    }
    return arg;
}

static void *waiter(void *arg)
{
    while (outrun < COMMITS) {
        pthread_barrier_wait(&round_begins);
        while (state == BEFORE)
            sched_yield();
        pthread_mutex_lock(&cache_lock);
        state = OVER;
        pthread_mutex_unlock(&cache_lock);
        pthread_barrier_wait(&round_ends);
    }
    return arg;
}

int main(void)
{
    pthread_t t[2];
    pthread_barrier_init(&round_begins, NULL, 3);
    pthread_barrier_init(&round_ends, NULL, 3);
    pthread_create(&t[0], NULL, barger, NULL);
    pthread_create(&t[1], NULL, waiter, NULL);
    while (outrun < COMMITS) {
        pthread_barrier_wait(&round_begins);
        pthread_mutex_lock(&cache_lock);
        state = HELD;
        while (word() != 2)
            sched_yield();
        spend(1000000);
        state = GIVEN_UP;
        pthread_mutex_unlock(&cache_lock);
        pthread_barrier_wait(&round_ends);
        state = BEFORE;
    }
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return 0;
}
