/*
 * Threads that wait for known times, once in each way. Prints the truth, a line for each wait:
 *   <hook> <waiter tid> <waker tid> <ns from call to return, by our own clock> <ns it had to wait>
 * The last is what the program arranged; the rest of the time the thread waited for a CPU.
 * A waker of 0: no thread ends the wait. The waker waits until the waiter sleeps in the kernel.
 */
#include "truth.h"

static pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;

static void truth(const char *hook, int waiter, int waker, uint64_t start, uint64_t arranged)
{
    uint64_t waited = now() - start;
    /* trylock, so that reporting never waits itself */
    while (pthread_mutex_trylock(&out) != 0)
        ;
    printf("%s %d %d %llu %llu\n", hook, waiter, waker, (unsigned long long)waited,
           (unsigned long long)arranged);
    pthread_mutex_unlock(&out);
}

/* One scene: a waiter and the main thread, which ends its wait after 20 ms of sleep. */
struct scene {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    _Atomic int waiter;
    _Atomic int timed_out;
    int main_tid;
    int ready;
    uint64_t arranged;
    uint64_t unlocked;       /* when the mutex was last given up; under the mutex */
    uint64_t longest;        /* longest time it was held while a thread waited; under the mutex */
    uint64_t free;           /* how long it was free, for want of a CPU; under the mutex */
    _Atomic uint64_t asleep; /* when the waiters were seen asleep; 0: they have not been */
};

/* A thread may have to wait for a CPU between making up its mind and waiting. */
static uint64_t since_asleep(const struct scene *s, uint64_t end)
{
    uint64_t asleep = s->asleep;
    return asleep && asleep < end ? end - asleep : 0;
}

static void *lock_waiter(void *arg)
{
    struct scene *s = arg;
    s->waiter = tid();
    uint64_t start = now();
    pthread_mutex_lock(&s->mutex);
    truth("pthread_mutex_lock", tid(), s->main_tid, start,
          since_asleep(s, s->unlocked) - s->longest - s->free);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void *timedlock_waiter(void *arg)
{
    struct scene *s = arg;
    struct timespec late = after(CLOCK_REALTIME, 10000 * MS);
    s->waiter = tid();
    uint64_t start = now();
    pthread_mutex_timedlock(&s->mutex, &late);
    truth("pthread_mutex_timedlock", tid(), s->main_tid, start, s->arranged);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void *clocklock_timeout(void *arg)
{
    struct scene *s = arg;
    s->waiter = tid();
    uint64_t start = now();
    struct timespec soon = after(CLOCK_MONOTONIC, 15 * MS);
    if (pthread_mutex_clocklock(&s->mutex, CLOCK_MONOTONIC, &soon) != ETIMEDOUT)
        abort();
    truth("pthread_mutex_clocklock", tid(), 0, start, since_asleep(s, start + 15 * MS));
    s->timed_out = 1;
    return NULL;
}

static void *cond_waiter(void *arg)
{
    struct scene *s = arg;
    pthread_mutex_lock(&s->mutex);
    s->waiter = tid();
    uint64_t start = now();
    while (!s->ready)
        pthread_cond_wait(&s->cond, &s->mutex);
    truth("pthread_cond_wait", tid(), s->main_tid, start, s->arranged);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void *cond_timeout(void *arg)
{
    struct scene *s = arg;
    pthread_mutex_lock(&s->mutex);
    s->waiter = tid();
    uint64_t start = now();
    struct timespec soon = after(CLOCK_REALTIME, 15 * MS);
    while (pthread_cond_timedwait(&s->cond, &s->mutex, &soon) != ETIMEDOUT)
        ;
    truth("pthread_cond_timedwait", tid(), 0, start, since_asleep(s, start + 15 * MS));
    s->timed_out = 1;
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static void *sleeper(void *arg)
{
    (void)arg;
    uint64_t start = now();
    usleep(12000);
    truth("usleep", tid(), 0, start, 12 * MS);
    struct timespec ts = {0, 11 * MS};
    start = now();
    nanosleep(&ts, NULL);
    truth("nanosleep", tid(), 0, start, 11 * MS);
    start = now();
    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
    truth("clock_nanosleep", tid(), 0, start, 11 * MS);
    return NULL;
}

static uint64_t joined_begin, joined_end;
static _Atomic int joining;

static void *busy_thread(void *arg)
{
    *(_Atomic int *)arg = tid();
    until_asleep(&joining);
    joined_begin = now();
    busy(25 * MS);
    joined_end = now();
    return NULL;
}

static void with_held_mutex(struct scene *s, void *(*waiter)(void *), int waiters)
{
    pthread_t thread[8];
    s->arranged = 20 * MS;
    s->asleep = 0;
    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < waiters; i++) {
        s->waiter = 0;
        pthread_create(&thread[i], NULL, waiter, s);
        until_asleep(&s->waiter); /* they queue up in this order */
    }
    s->asleep = now();
    busy(20 * MS);
    while (waiter == clocklock_timeout && !s->timed_out)
        busy(20000);
    s->unlocked = now();
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < waiters; i++) {
        while (pthread_tryjoin_np(thread[i], NULL) != 0)
            busy(20000);
    }
}

static void with_cond(struct scene *s, void *(*waiter)(void *), int waiters, int all)
{
    pthread_t thread[8];
    s->ready = s->timed_out = 0;
    s->arranged = 20 * MS;
    s->asleep = 0;
    for (int i = 0; i < waiters; i++) {
        s->waiter = 0;
        pthread_create(&thread[i], NULL, waiter, s);
        until_asleep(&s->waiter);
    }
    s->asleep = now();
    busy(20 * MS);
    while (waiter == cond_timeout && !s->timed_out)
        busy(20000);
    pthread_mutex_lock(&s->mutex);
    s->ready = 1;
    if (all)
        pthread_cond_broadcast(&s->cond);
    else
        pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < waiters; i++) {
        while (pthread_tryjoin_np(thread[i], NULL) != 0)
            busy(20000);
    }
}

/*
 * Holds and gives up the mutex again and again, too fast for the waiter to get in between. When a
 * generation of the trace ends between two of these, the time from one to the next shows as
 * runnable: the truth for waiting is less by one of them, and by the time when the mutex was free.
 */
static void barge(struct scene *s)
{
    pthread_t thread;
    pthread_mutex_lock(&s->mutex);
    s->waiter = 0;
    pthread_create(&thread, NULL, lock_waiter, s);
    until_asleep(&s->waiter);
    s->asleep = now();
    for (int i = 0; i < 160; i++) {
        uint64_t locked = now();
        busy(MS / 2);
        s->unlocked = now();
        if (s->unlocked - locked > s->longest)
            s->longest = s->unlocked - locked;
        pthread_mutex_unlock(&s->mutex);
        pthread_mutex_lock(&s->mutex);
        s->free += now() - s->unlocked;
    }
    s->unlocked = now();
    pthread_mutex_unlock(&s->mutex);
    while (pthread_tryjoin_np(thread, NULL) != 0)
        busy(20000);
}

int main(void)
{
    static struct scene s = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    _Atomic int child = 0;
    pthread_t thread;
    s.main_tid = tid();
    pthread_setname_np(pthread_self(), "truth");
    with_held_mutex(&s, lock_waiter, 1);
    with_held_mutex(&s, timedlock_waiter, 1);
    with_held_mutex(&s, clocklock_timeout, 1);
    with_cond(&s, cond_waiter, 1, 0);
    with_cond(&s, cond_waiter, 4, 1);
    with_cond(&s, cond_timeout, 1, 0);
    pthread_create(&thread, NULL, sleeper, NULL);
    while (pthread_tryjoin_np(thread, NULL) != 0)
        busy(20000);
    pthread_create(&thread, NULL, busy_thread, &child);
    joining = tid();
    uint64_t start = now();
    pthread_join(thread, NULL);
    truth("pthread_join", tid(), child, start, joined_end - joined_begin);
    barge(&s);
    return 0;
}
