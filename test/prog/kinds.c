/*
 * Every kind of mutex, alone and contended: prints what each call returned. argv[1] = "contended"
 * makes another thread hold each mutex until the first has waited for 10 ms.
 */
#include "truth.h"

#include <threads.h>

static const struct {
    const char *name;
    int type, robust, protocol, shared;
} kinds[] = {
    {"normal", PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_NONE, 0},
    {"recursive", PTHREAD_MUTEX_RECURSIVE, 0, PTHREAD_PRIO_NONE, 0},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, PTHREAD_PRIO_NONE, 0},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, PTHREAD_PRIO_NONE, 0},
    {"robust", PTHREAD_MUTEX_NORMAL, 1, PTHREAD_PRIO_NONE, 0},
    {"inherit", PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT, 0},
    {"protect", PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_PROTECT, 0},
    {"shared", PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_NONE, 1},
};

static pthread_mutex_t mutex;
static pthread_barrier_t held;
static _Atomic int waiter;
static const struct timespec past = {1, 0}, odd = {0, 2000000000};

static void *hold(void *arg)
{
    struct timespec ms10 = {0, 10000000};
    pthread_mutex_lock(&mutex);
    pthread_barrier_wait(&held);
    until_asleep(&waiter);
    nanosleep(&ms10, NULL);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *die_holding(void *arg)
{
    pthread_mutex_lock(&mutex);
    return arg;
}

static void contend(void)
{
    pthread_t thread;
    waiter = 0;
    pthread_create(&thread, NULL, hold, NULL);
    pthread_barrier_wait(&held);
    printf(" past %d", pthread_mutex_timedlock(&mutex, &past));
    printf(" odd %d", pthread_mutex_timedlock(&mutex, &odd));
    waiter = tid();
    printf(" wait %d", pthread_mutex_lock(&mutex));
    printf(" unlock %d", pthread_mutex_unlock(&mutex));
    pthread_join(thread, NULL);
}

static void alone(size_t k)
{
    printf(" try %d", pthread_mutex_trylock(&mutex));
    printf(" again %d", pthread_mutex_trylock(&mutex));
    if (kinds[k].type == PTHREAD_MUTEX_RECURSIVE) {
        printf(" lock %d", pthread_mutex_lock(&mutex));
        printf(" unlock %d", pthread_mutex_unlock(&mutex));
        printf(" unlock %d", pthread_mutex_unlock(&mutex));
    }
    if (kinds[k].type == PTHREAD_MUTEX_ERRORCHECK)
        printf(" relock %d", pthread_mutex_lock(&mutex));
    printf(" timed %d", pthread_mutex_timedlock(&mutex, &past));
    printf(" odd %d", pthread_mutex_timedlock(&mutex, &odd));
    printf(" clock %d", pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &past));
    printf(" cpuclock %d", pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
    printf(" unlock %d", pthread_mutex_unlock(&mutex));
    if (kinds[k].type == PTHREAD_MUTEX_ERRORCHECK)
        printf(" unowned %d", pthread_mutex_unlock(&mutex));
}

static void owner_died(void)
{
    RUN_THREADS(1, die_holding, NULL);
    printf(" dead %d", pthread_mutex_lock(&mutex));
    printf(" unlock %d", pthread_mutex_unlock(&mutex)); /* without consistent: unusable */
    printf(" lost %d", pthread_mutex_lock(&mutex));
    struct timespec soon = after(CLOCK_REALTIME, 1000000000);
    printf(" c11 %d", mtx_timedlock((mtx_t *)&mutex, &soon));
    printf(" timed %d", pthread_mutex_timedlock(&mutex, &soon));
}

int main(int argc, char **argv)
{
    pthread_barrier_init(&held, NULL, 2);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        pthread_mutexattr_t attr;
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_settype(&attr, kinds[k].type);
        pthread_mutexattr_setrobust(&attr,
                                    kinds[k].robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
        pthread_mutexattr_setprotocol(&attr, kinds[k].protocol);
        pthread_mutexattr_setpshared(&attr, kinds[k].shared ? PTHREAD_PROCESS_SHARED
                                                            : PTHREAD_PROCESS_PRIVATE);
        printf("%s init %d", kinds[k].name, pthread_mutex_init(&mutex, &attr));
        if (argc > 1 && strcmp(argv[1], "contended") == 0)
            contend();
        else
            alone(k);
        if (kinds[k].robust)
            owner_died();
        printf("\n");
    }
    return 0;
}
