/*
 * tokens lock|tried|queue|slots|hog|baton|again|lent|alarm ROUNDS: what semaphores serve as.
 *
 * lock: two threads hold `token` by turns, for 1 ms each.
 * tried: as lock, but a thread waits only if sem_trywait got nothing. CPython's locks do so.
 * queue: main posts to `token` every millisecond, for two threads that take.
 * slots: four threads; two at a time have one of the two tokens, for 2 ms.
 * hog: of two tokens main keeps one all the time; two threads have the other by turns.
 * baton: two threads wake each other by turns, through `token` and `other`.
 * again: as lock; then a new semaphore at the same address, as in queue.
 * lent: as lock; then main takes the token and waits for another thread to post it, 2.5 s later.
 * alarm: a thread waits, and a signal handler that interrupts the wait posts.
 */
#include "program.h"

static sem_t token, other;
static int rounds;
static bool tries;

static void take(void)
{
    if (!tries || sem_trywait(&token) != 0)
        sem_wait(&token);
}

static void *hold(void *us)
{
    for (int i = 0; i < rounds; i++) {
        take();
        usleep((useconds_t)(uintptr_t)us);
        sem_post(&token);
        usleep((useconds_t)(uintptr_t)us / 4); /* now it is another one's turn */
    }
    return NULL;
}

static void *consume(void *arg)
{
    for (int i = 0; i < rounds; i++)
        sem_wait(&token);
    return arg;
}

static void *answer(void *arg)
{
    for (int i = 0; i < rounds; i++) {
        sem_wait(&token);
        usleep(1000);
        sem_post(&other);
    }
    return arg;
}

static void *ask(void *arg)
{
    for (int i = 0; i < rounds; i++) {
        usleep(1000);
        sem_post(&token);
        sem_wait(&other);
    }
    return arg;
}

static void start(pthread_t *threads, int n, void *(*work)(void *), uintptr_t arg)
{
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, work, (void *)arg);
}

static void join(pthread_t *threads, int n)
{
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void lock(void)
{
    pthread_t threads[2];
    sem_init(&token, 0, 1);
    start(threads, 2, hold, 1000);
    join(threads, 2);
    sem_destroy(&token);
}

static void queue(void)
{
    pthread_t threads[2];
    sem_init(&token, 0, 0);
    start(threads, 2, consume, 0);
    for (int i = 0; i < 2 * rounds; i++) {
        usleep(1000);
        sem_post(&token);
    }
    join(threads, 2);
}

static void slots(void)
{
    pthread_t threads[4];
    sem_init(&token, 0, 2);
    start(threads, 4, hold, 2000);
    join(threads, 4);
}

static void hog(void)
{
    pthread_t threads[2];
    sem_init(&token, 0, 2);
    sem_wait(&token);
    start(threads, 2, hold, 1000);
    join(threads, 2);
    sem_post(&token);
}

static void baton(void)
{
    pthread_t threads[2];
    sem_init(&token, 0, 0);
    sem_init(&other, 0, 0);
    start(threads, 1, answer, 0);
    start(threads + 1, 1, ask, 0);
    join(threads, 2);
}

static void *give_back(void *arg)
{
    usleep(2500000);
    sem_post(&token);
    return arg;
}

static void lend(void)
{
    pthread_t thread;
    sem_wait(&token);
    start(&thread, 1, give_back, 0);
    sem_wait(&token);
    join(&thread, 1);
}

static void post(int signal)
{
    (void)signal;
    sem_post(&token);
}

static void on_alarm(void)
{
    struct itimerval every = {{0, 10000}, {0, 10000}};
    sem_init(&token, 0, 0);
    signal(SIGALRM, post);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < rounds;)
        i += sem_wait(&token) == 0;
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[1] : "";
    rounds = argc > 2 ? atoi(argv[2]) : 0;
    tries = strcmp(way, "tried") == 0;
    bool lent = strcmp(way, "lent") == 0;
    if (strcmp(way, "lock") == 0 || tries || strcmp(way, "again") == 0 || lent)
        lock();
    if (strcmp(way, "queue") == 0 || strcmp(way, "again") == 0)
        queue();
    if (lent)
        lend();
    if (strcmp(way, "alarm") == 0)
        on_alarm();
    if (strcmp(way, "slots") == 0)
        slots();
    if (strcmp(way, "hog") == 0)
        hog();
    if (strcmp(way, "baton") == 0)
        baton();
    return 0;
}
