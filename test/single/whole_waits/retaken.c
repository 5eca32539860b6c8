/*
 * Four threads take a lock, keep it for a millisecond, give it up and take it again. A woken waiter
 * mostly finds it taken again, and sleeps on. Prints how many calls slept, as far as the kernel
 * knows, and how many found the lock taken. A lock may come free between the two:
 *
 *   plain      pthread_mutex_lock
 *   often      as plain, with 50 times as many holds of a tenth of a millisecond
 *   timed      pthread_mutex_timedlock, which gives up after 3 ms
 *   left       as plain; the program ends with the lock held, and threads wait for it
 *   condition  pthread_cond_wait; the mutex is kept for a millisecond after each broadcast
 *   signalled  as condition; the program ends with the mutex held, after one more broadcast
 */
#include "../../prog/asleep.h"

enum { THREADS = 4 };
static unsigned moment_us = 1000;
static int rounds = 40;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic int slept, waited, waiting;
static _Atomic int tid[THREADS];
static int round_now;
static bool timed, left;

static int wait_for_journal(void)
{
    struct timespec until = after(CLOCK_REALTIME, 3000000);
    return timed ? pthread_mutex_timedlock(&journal, &until) : pthread_mutex_lock(&journal);
}

/* How often the calling thread has left its CPU to wait. */
static long sleeps(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
}

static bool take(void)
{
    if (pthread_mutex_trylock(&journal) == 0)
        return true;
    waited++;
    long before = sleeps();
    waiting++;
    bool taken = wait_for_journal() == 0;
    waiting--;
    slept += sleeps() > before;
    return taken;
}

static void *append(void *arg)
{
    *(_Atomic int *)arg = gettid();
    for (int i = 0; i < rounds || left; i++) {
        if (!take())
            continue;
        usleep(moment_us);
        pthread_mutex_unlock(&journal);
    }
    return arg;
}

static void *follow(void *arg)
{
    pthread_mutex_lock(&journal);
    for (int seen = 0; seen < rounds;) {
        waiting++;
        while (round_now == seen) {
            waited++;
            slept++;
            pthread_cond_wait(&changed, &journal);
        }
        seen = round_now;
    }
    pthread_mutex_unlock(&journal);
    return arg;
}

static void lead(bool holds)
{
    for (int i = 1; i <= rounds; i++) {
        while (waiting < i * THREADS)
            usleep(moment_us);
        pthread_mutex_lock(&journal);
        round_now = i;
        pthread_cond_broadcast(&changed);
        usleep(moment_us);
        if (!holds || i < rounds)
            pthread_mutex_unlock(&journal);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    bool signalled = strcmp(how, "signalled") == 0;
    bool condition = signalled || strcmp(how, "condition") == 0;
    pthread_t thread[THREADS];
    if (strcmp(how, "often") == 0) {
        moment_us /= 10;
        rounds *= 50;
    }
    timed = strcmp(how, "timed") == 0;
    left = strcmp(how, "left") == 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, condition ? follow : append, &tid[i]);
    if (condition)
        lead(signalled);
    if (left) {
        usleep(rounds * moment_us);
        take();
        for (int i = 0; i < THREADS; i++) {
            while (waiting < THREADS || !is_asleep(tid[i]))
                usleep(moment_us);
        }
        slept += THREADS;
    }
    for (int i = 0; i < THREADS && !left && !signalled; i++)
        pthread_join(thread[i], NULL);
    printf("%d %d\n", slept, waited);
}
