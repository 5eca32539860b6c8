/*
 * Holders of locks while another thread waits: locks ROUNDS. A line for each wait: the
 * lock's name, or its address; who held it, who waited (thread ids), and for how long it was held,
 * in ns.
 */
#include "program.h"
#include <threads.h>

enum { THREADS = 4 };

/* Kinds of locks ------------------------------------------------------------------------------ */

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive, errorcheck, adaptive, robust, orphan, inherit, timed, inner;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t to_write = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t tried = PTHREAD_RWLOCK_INITIALIZER;
static struct {
    long balance[4];
    pthread_mutex_t mutex;
} accounts = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static mtx_t c11, c11_tried;
static pthread_mutex_t *heap;

static void lock(void *l)
{
    pthread_mutex_lock(l);
}

static void unlock(void *l)
{
    pthread_mutex_unlock(l);
}

static void lock_twice(void *l)
{
    pthread_mutex_lock(l);
    pthread_mutex_lock(l);
}

static void unlock_twice(void *l)
{
    pthread_mutex_unlock(l);
    pthread_mutex_unlock(l);
}

static void try(void *l)
{
    while (pthread_mutex_trylock(l) != 0)
        ;
}

static void lock_timed(void *l)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 100;
    pthread_mutex_timedlock(l, &t);
}

static void lock_both(void *l)
{
    pthread_mutex_lock(&inner);
    pthread_mutex_lock(l);
}

static void unlock_both(void *l)
{
    pthread_mutex_unlock(&inner); /* hand over hand: not in the order of a stack */
    pthread_mutex_unlock(l);
}

static void rdlock(void *l)
{
    pthread_rwlock_rdlock(l);
}

static void wrlock(void *l)
{
    pthread_rwlock_wrlock(l);
}

static void rwunlock(void *l)
{
    pthread_rwlock_unlock(l);
}

static void lock_c11(void *l)
{
    mtx_lock(l);
}

static void try_c11(void *l)
{
    while (mtx_trylock(l) != thrd_success)
        ;
}

static void unlock_c11(void *l)
{
    mtx_unlock(l);
}

static void *end_with(void *l)
{
    pthread_mutex_lock(l);
    return NULL;
}

/* From a thread that has ended with it. */
static void take_over(void *l)
{
    RUN_THREADS(1, end_with, l);
    if (pthread_mutex_lock(l) != EOWNERDEAD || pthread_mutex_consistent(l) != 0)
        abort();
}

static void try_write(void *l)
{
    while (pthread_rwlock_trywrlock(l) != 0)
        ;
}

static struct kind {
    const char *name;
    void *lock;
    void (*take)(void *l), (*give_up)(void *l);        /* the holder's */
    void (*await)(void *l), (*give_up_again)(void *l); /* the waiter's */
} kinds[] = {
    {"plain", &plain, lock, unlock, lock, unlock},
    {"recursive", &recursive, lock_twice, unlock_twice, lock, unlock},
    {"errorcheck", &errorcheck, lock, unlock, lock, unlock},
    {"adaptive", &adaptive, lock, unlock, lock, unlock},
    {"robust", &robust, lock, unlock, lock, unlock},
    {"orphan", &orphan, take_over, unlock, lock, unlock},
    {"inherit", &inherit, lock, unlock, lock, unlock},
    {"timed", &timed, try, unlock, lock_timed, unlock},
    {"accounts+32", &accounts.mutex, lock_both, unlock_both, lock, unlock},
    {"written", &written, wrlock, rwunlock, rdlock, rwunlock},
    {"to_write", &to_write, wrlock, rwunlock, wrlock, rwunlock},
    {"tried", &tried, try_write, rwunlock, rdlock, rwunlock},
    {"c11", &c11, lock_c11, unlock_c11, lock_c11, unlock_c11},
    {"c11_tried", &c11_tried, try_c11, unlock_c11, lock_c11, unlock_c11},
    {"heap", NULL, lock, unlock, lock, unlock},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void init(pthread_mutex_t *m, int type, int robustness, int protocol)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, type);
    pthread_mutexattr_setrobust(&a, robustness);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutex_init(m, &a);
}

static void make_locks(void)
{
    init(&recursive, PTHREAD_MUTEX_RECURSIVE, 0, 0);
    init(&errorcheck, PTHREAD_MUTEX_ERRORCHECK, 0, 0);
    init(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0);
    init(&robust, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0);
    init(&orphan, PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST, 0);
    init(&inherit, PTHREAD_MUTEX_NORMAL, 0, PTHREAD_PRIO_INHERIT);
    init(&timed, PTHREAD_MUTEX_NORMAL, 0, 0);
    init(&inner, PTHREAD_MUTEX_NORMAL, 0, 0);
    mtx_init(&c11, mtx_plain);
    mtx_init(&c11_tried, mtx_plain);
    heap = malloc(sizeof *heap);
    pthread_mutex_init(heap, NULL);
    kinds[KINDS - 1].lock = heap;
}

/* Rounds --------------------------------------------------------------------------------------- */

static sem_t held, over;
static pthread_barrier_t next;
static int rounds, tids[THREADS];
static useconds_t hold_us;
static volatile int ended;

static void hold(const struct kind *kind, int waiter)
{
    kind->take(kind->lock);
    long from = now_ns();
    sem_post(&held);
    usleep(hold_us);
    long ns = now_ns() - from;
    kind->give_up(kind->lock);
    sem_wait(&over);
    if (kind->lock == heap)
        printf("%p %d %d %ld\n", (void *)heap, gettid(), tids[waiter], ns);
    else
        printf("%s %d %d %ld\n", kind->name, gettid(), tids[waiter], ns);
}

static void await(const struct kind *kind)
{
    sem_wait(&held);
    kind->await(kind->lock);
    kind->give_up_again(kind->lock);
    sem_post(&over);
}

/* Each holds, each waits. */
static void *play(void *arg)
{
    int me = (int)(long)arg;
    char name[16];
    snprintf(name, sizeof name, "player%d", me);
    pthread_setname_np(pthread_self(), name);
    tids[me] = gettid();
    for (int round = 0; round < rounds; round++) {
        int holder = round % THREADS,
            waiter = (round / THREADS % (THREADS - 1) + 1 + holder) % THREADS;
        pthread_barrier_wait(&next);
        if (me == holder)
            hold(&kinds[round / 7 % KINDS], waiter);
        else if (me == waiter)
            await(&kinds[round / 7 % KINDS]);
    }
    return NULL;
}

static void *burn(void *arg)
{
    while (!ended)
        ;
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t players[THREADS], burners[2];
    rounds = argc > 1 ? atoi(argv[1]) : 100;
    hold_us = argc > 2 ? (useconds_t)atoi(argv[2]) : 600;
    make_locks();
    sem_init(&held, 0, 0);
    sem_init(&over, 0, 0);
    pthread_barrier_init(&next, NULL, THREADS);
    for (int i = 0; i < 2; i++)
        pthread_create(&burners[i], NULL, burn, NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&players[i], NULL, play, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(players[i], NULL);
    ended = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(burners[i], NULL);
    return 0;
}
