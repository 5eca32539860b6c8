/*
 * Functions through which threads wait for several purposes. `wrapper`: a pool's worker waits for
 * work, for answers and for a time by one function each. `trampoline`: one routine starts a reader,
 * which waits for room, and workers. It is built with symbols, without, and as a library without.
 */
#include "../../prog/program.h"

#include <time.h>

enum { JOBS = 40, ROOM = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, rested = PTHREAD_COND_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t asked;
static int jobs, waits_for_answer, done, all_read;
static atomic_int resting, rested_before; /* workers; how often one has rested */

#define APART __attribute__((noinline, noclone))
#define PUBLIC __attribute__((visibility("default")))

static void let_others(void)
{
    pthread_mutex_unlock(&mutex);
    sched_yield();
    pthread_mutex_lock(&mutex);
}

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

APART static void take(void)
{
    while (!jobs) {
        resting++;
        await(&some);
        resting--;
    }
    jobs--;
    __asm__ volatile("");
}

APART static void fetch(void)
{
    waits_for_answer = 1;
    sem_post(&asked);
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

static void *backend(void *arg)
{
    for (int i = 0; i < JOBS; i++) {
        sem_wait(&asked);
        pthread_mutex_lock(&mutex);
        waits_for_answer = 0;
        pthread_cond_signal(&answered);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
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

static void run_wrapper(void)
{
    pthread_t t[2];
    sem_init(&asked, 0, 0);
    pthread_create(&t[0], 0, backend, 0);
    pthread_create(&t[1], 0, pooled, 0);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < JOBS; i++) {
        while (!resting || jobs) /* nobody wakes this thread: it would be an answer */
            let_others();
        jobs++;
        pthread_cond_signal(&some);
    }
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
}

/* A worker that rests finds the mutex free: then the signal, and nothing else, ends its wait. */
APART static void signal_alone(pthread_cond_t *cond)
{
    int rests = resting, before = rested_before;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(cond);
    while (cond == &some && rests && rested_before == before)
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
            rested_before++;
            continue;
        }
        jobs--;
        pthread_mutex_unlock(&mutex);
        usleep(1000);
        pthread_mutex_lock(&mutex);
        while (done == JOBS - 1 && !all_read) /* so that the reader has to wait at its end */
            let_others();
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
        run_wrapper();
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
