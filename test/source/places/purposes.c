/*
 * Functions through which threads wait for several purposes. `wrapper`: a pool's worker waits for
 * work, for answers and for a time by one function each. So does the thread that answers. `limits`:
 * each job is a wait that times out, nearer to the loop than the wait for work. `rare`: two jobs,
 * each of several sleeps. `held`: at the end one worker of two waits for the mutex. `trampoline`:
 * one routine starts a reader, which waits for room, and workers. It is built with symbols,
 * without, and as a library without.
 */
#include "../../prog/program.h"

#include <time.h>

enum { JOBS = 40, ROOM = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, rested = PTHREAD_COND_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_cond_t requested = PTHREAD_COND_INITIALIZER;
static int jobs, waits_for_answer, done, all_read, request, ready;
static atomic_int resting, woken;

#define APART __attribute__((noinline, noclone))
#define PUBLIC __attribute__((visibility("default")))

APART static void await(pthread_cond_t *cond)
{
    pthread_cond_wait(cond, &mutex);
    __asm__ volatile("");
}

APART static int await_for(pthread_cond_t *cond, long ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec + ms * 1000000) / 1000000000;
    until.tv_nsec = (until.tv_nsec + ms * 1000000) % 1000000000;
    int error = pthread_cond_timedwait(cond, &mutex, &until);
    __asm__ volatile("");
    return error;
}

APART static void take_by(pthread_cond_t *cond)
{
    while (!jobs) {
        resting++;
        await(cond);
        resting--;
    }
    jobs--;
    __asm__ volatile("");
}

APART static void take(void)
{
    take_by(&some);
    __asm__ volatile("");
}

/* The server rests: then the signal, and nothing else, ends its wait. */
APART static void ask(void)
{
    while (!ready) {
        pthread_mutex_unlock(&mutex);
        sched_yield();
        pthread_mutex_lock(&mutex);
    }
    ready = 0;
    request = waits_for_answer = 1;
    pthread_cond_signal(&requested);
}

APART static void fetch(void)
{
    ask();
    while (waits_for_answer)
        await(&answered);
    __asm__ volatile("");
}

APART static void nap(void)
{
    while (await_for(&never, 1) == 0) {
    }
    __asm__ volatile("");
}

APART static void handle(void)
{
    fetch();
    nap();
    __asm__ volatile("");
}

/* In a library without symbols, all that is known of its waits. */
void *pooled(void *arg);
PUBLIC void *pooled(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < JOBS; i++) {
        take();
        handle();
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

APART static void next_request(void)
{
    while (!request) {
        ready = 1;
        await(&requested);
    }
    request = 0;
    __asm__ volatile("");
}

static void *server(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < JOBS; i++) {
        next_request();
        pthread_mutex_unlock(&mutex);
        usleep(1000);
        pthread_mutex_lock(&mutex);
        waits_for_answer = 0;
        pthread_cond_signal(&answered);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *limited(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < JOBS; i++) {
        take();
        await_for(&never, 1);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

enum { RARE = 2 };

static void *rare(void *arg)
{
    for (int i = 0; i < RARE; i++) {
        pthread_mutex_lock(&mutex);
        take();
        pthread_mutex_unlock(&mutex);
        for (int k = 0; k < JOBS; k++)
            usleep(500);
    }
    return arg;
}

static void *taker(void *cond)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        take_by(cond);
    return cond;
}

/* Returns with the mutex once n threads rest. A wake-up of this thread would be an answer. */
static void lock_at_rest(int n)
{
    for (;;) {
        bool locked = pthread_mutex_trylock(&mutex) == 0;
        if (locked && resting >= n && !jobs)
            return;
        if (locked)
            pthread_mutex_unlock(&mutex);
        sched_yield();
    }
}

static void put(pthread_cond_t *cond, int rests)
{
    lock_at_rest(rests);
    jobs++;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(&mutex);
}

static void run_pool(void *(*worker)(void *), void *(*answerer)(void *), int n)
{
    pthread_t t[2];
    if (answerer)
        pthread_create(&t[0], 0, answerer, 0);
    pthread_create(&t[1], 0, worker, 0);
    for (int i = 0; i < n; i++)
        put(&some, 1);
    for (int i = !answerer; i < 2; i++)
        pthread_join(t[i], 0);
}

/* Ends while the worker that was signalled waits for the mutex, and the other one for work. */
static void run_held(void)
{
    pthread_cond_t *conds[] = {&some, &rested};
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, taker, conds[i]);
    for (int i = 0; i < JOBS; i++)
        put(conds[i % 2], 2);
    lock_at_rest(2);
    jobs++;
    pthread_cond_signal(&some);
    while (*(volatile int *)&mutex.__data.__lock != 2) /* 2: another thread waits */
        sched_yield();
    exit(0);
}

/* A worker that rests finds the mutex free: then the signal, and nothing else, ends its wait. */
APART static void signal_alone(pthread_cond_t *cond)
{
    int rests = resting, before = woken;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(cond);
    while (cond == &some && rests && woken == before)
        sched_yield();
    pthread_mutex_lock(&mutex);
}

/* The reader waits by await_for, so that a report can tell its waits from those of workers. */
APART static void read_all(void)
{
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < JOBS; i++) {
        while (jobs == ROOM)
            await_for(&room, 60000);
        jobs++;
        signal_alone(&some);
    }
    all_read = 1;
    while (done < JOBS)
        await_for(&room, 60000);
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}

APART static void work(void)
{
    pthread_mutex_lock(&mutex);
    while (done < JOBS) {
        if (!jobs) {
            resting++;
            pthread_cond_signal(&rested);
            await(&some);
            resting--;
            woken++;
            continue;
        }
        jobs--;
        pthread_mutex_unlock(&mutex);
        usleep(1000);
        pthread_mutex_lock(&mutex);
        while (done == JOBS - 1 && !all_read) { /* so that the reader has to wait at its end */
            pthread_mutex_unlock(&mutex);
            sched_yield();
            pthread_mutex_lock(&mutex);
        }
        done++;
        signal_alone(&room);
    }
    pthread_mutex_unlock(&mutex);
    __asm__ volatile("");
}

/* It does not wait itself: else it is no trampoline. */
APART static void *begin(void *arg)
{
    (*(void (**)(void))arg)();
    return arg;
}

static void run_trampoline(void)
{
    static void (*routine[])(void) = {work, work, read_all};
    pthread_t t[3];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, begin, &routine[i]);
    pthread_mutex_lock(&mutex);
    while (resting < 2)
        pthread_cond_wait(&rested, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_create(&t[2], 0, begin, &routine[2]);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
}

void purposes_run(const char *scenario);
PUBLIC void purposes_run(const char *scenario)
{
    if (strcmp(scenario, "wrapper") == 0)
        run_pool(pooled, server, JOBS);
    else if (strcmp(scenario, "limits") == 0)
        run_pool(limited, NULL, JOBS);
    else if (strcmp(scenario, "rare") == 0)
        run_pool(rare, NULL, RARE);
    else if (strcmp(scenario, "held") == 0)
        run_held();
    else
        run_trampoline();
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
    (void)argc;
    purposes_run(argv[1]);
    return 0;
}
#endif
