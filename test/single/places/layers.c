/*
 * Threads below many functions. "pool": a worker waits for jobs, and nowhere else. "sleeper": a
 * thread sleeps in each of its jobs. "dispatcher": a thread waits from its beginning to the end, or
 * with "ended" as a second argument until the end is signalled. "launcher": the first thread only
 * waits for another one. "late": the first thread joins a thread that waits until a third one posts
 * its semaphore.
 */
#include "../../prog/program.h"

enum { JOBS = 10 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static sem_t event;
static int jobs;
static atomic_bool waiting;

static void take(void)
{
    pthread_mutex_lock(&mutex);
    waiting = true;
    while (!jobs)
        pthread_cond_wait(&some, &mutex);
    jobs--;
    pthread_mutex_unlock(&mutex);
}

static void nap(void)
{
    usleep(2000);
}

static void long_nap(void)
{
    usleep(100000);
}

static void await(void)
{
    sem_wait(&event);
    pthread_exit(NULL);
}

/* LAYER(n, m): a function that calls the function m. */
#define LAYER(n, m)                                             \
    static __attribute__((noinline)) void n(void (*last)(void)) \
    {                                                           \
        m(last);                                                \
        __asm__ volatile("");                                   \
    }
static __attribute__((noinline)) void inner(void (*last)(void))
{
    last();
    __asm__ volatile("");
}
LAYER(queue, inner)
LAYER(shard, queue)
LAYER(router, shard)
LAYER(executor, router)
LAYER(step, executor)

static void *run(void *last)
{
    for (int i = 0; i < JOBS; i++)
        step(last);
    return NULL;
}

/* Hands out a job each time that the worker waits, or is about to. */
static void hand_out(void)
{
    for (int i = 0; i < JOBS; i++) {
        while (!waiting)
            sched_yield();
        pthread_mutex_lock(&mutex);
        waiting = false;
        jobs = 1;
        pthread_cond_signal(&some);
        pthread_mutex_unlock(&mutex);
    }
}

static void *post_late(void *arg)
{
    usleep(500000);
    sem_post(&event);
    return arg;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"pool", take},
                 {"sleeper", nap},
                 {"launcher", long_nap},
                 {"dispatcher", await},
                 {"late", await}};
    int mode = 0;
    while (argc < 2 || strcmp(argv[1], modes[mode].name) != 0)
        mode++;
    pthread_t t, late;
    pthread_create(&t, NULL, run, modes[mode].run);
    if (strcmp(argv[1], "late") == 0) {
        pthread_create(&late, NULL, post_late, NULL);
        return pthread_join(t, NULL) || pthread_join(late, NULL);
    }
    if (modes[mode].run == take)
        hand_out();
    if (modes[mode].run == await)
        usleep(500000);
    if (modes[mode].run == await && argc == 2)
        return 0;
    sem_post(&event);
    return pthread_join(t, NULL);
}
