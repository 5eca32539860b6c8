/*
 * Workers with a queue that is full at times, a journal behind a lock, and a backend that answers
 * their questions. Prints how many ns all threads spent in each kind of wait.
 */
#include "../../prog/program.h"

enum { WORKERS = 3, JOBS = 60, ROOM = 4 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int jobs, made, questions, answers, over;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of all threads, in ns. */
static struct {
    const char *name;
    uint64_t ns;
} spent[] = {{"take", 0}, {"put", 0}, {"journal", 0}, {"ask", 0}, {"answer", 0}};
static void spend(int what, uint64_t from)
{
    __atomic_fetch_add(&spent[what].ns, now() - from, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static int take(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&mutex);
    while (!jobs && !over)
        pthread_cond_wait(&some, &mutex);
    int it = jobs ? jobs-- : 0;
    pthread_cond_signal(&room);
    pthread_mutex_unlock(&mutex);
    spend(0, from);
    return it;
}

__attribute__((noinline)) static void put(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&mutex);
    while (jobs >= ROOM)
        pthread_cond_wait(&room, &mutex);
    jobs++;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&mutex);
    spend(1, from);
}

__attribute__((noinline)) static void write_down(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&journal);
    spend(2, from);
    usleep(2000);
    pthread_mutex_unlock(&journal);
}

/* A question to another thread, deep inside of a request. */
__attribute__((noinline)) static void fetch(void)
{
    uint64_t from = now();
    pthread_mutex_lock(&mutex);
    int mine = ++questions;
    pthread_cond_signal(&asked);
    while (answers < mine)
        pthread_cond_wait(&answered, &mutex);
    pthread_mutex_unlock(&mutex);
    spend(3, from);
}
__attribute__((noinline)) static void handle(void)
{
    fetch();
    write_down();
    __asm__("");
}
__attribute__((noinline)) static void serve(void)
{
    handle();
    __asm__("");
}

static void *worker(void *arg)
{
    while (take())
        serve();
    return arg;
}

static void *backend(void *arg)
{
    pthread_mutex_lock(&mutex);
    while (!over || answers < questions) {
        uint64_t from = now();
        if (answers == questions)
            pthread_cond_wait(&asked, &mutex);
        spend(4, from);
        pthread_mutex_unlock(&mutex);
        usleep(1000);
        pthread_mutex_lock(&mutex);
        answers = questions;
        pthread_cond_broadcast(&answered);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}

/* Makes all at once, and then none for a while. */
static void *producer(void *arg)
{
    for (made = 0; made < JOBS; made++) {
        if (made % 20 == 0)
            usleep(50000);
        put();
    }
    return arg;
}

int main(void)
{
    pthread_t t[WORKERS], b;
    pthread_create(&b, NULL, backend, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&t[i], NULL, worker, NULL);
    RUN_THREADS(1, producer, NULL);
    pthread_mutex_lock(&mutex);
    while (jobs) {
        pthread_mutex_unlock(&mutex);
        sched_yield();
        pthread_mutex_lock(&mutex);
    }
    over = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(t[i], NULL);
    pthread_cond_signal(&asked);
    pthread_join(b, NULL);
    for (unsigned i = 0; i < sizeof spent / sizeof *spent; i++)
        printf("%s %llu\n", spent[i].name, (unsigned long long)spent[i].ns);
    return 0;
}
