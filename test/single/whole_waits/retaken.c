/*
 * Four threads take a lock, keep it for a millisecond, give it up and take it again. A woken waiter
 * mostly finds it taken again, and sleeps on. Prints how many calls had to wait:
 *
 *   plain      pthread_mutex_lock
 *   timed      pthread_mutex_timedlock, which gives up after 3 ms
 *   left       as plain; the program ends with the lock held, and threads wait for it
 *   condition  pthread_cond_wait; the mutex is kept for a millisecond after each broadcast
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 40, MOMENT_US = 1000 };
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Atomic int waited, waiting;
static int round_now;
static bool timed, left;

static int wait_for_journal(void)
{
    struct timespec until;
    if (!timed)
        return pthread_mutex_lock(&journal);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 3000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_mutex_timedlock(&journal, &until);
}

static bool take(void)
{
    if (pthread_mutex_trylock(&journal) == 0)
        return true;
    waited++;
    return wait_for_journal() == 0;
}

static void *append(void *arg)
{
    for (int i = 0; i < ROUNDS || left; i++) {
        if (!take())
            continue;
        usleep(MOMENT_US);
        pthread_mutex_unlock(&journal);
    }
    return arg;
}

static void *follow(void *arg)
{
    pthread_mutex_lock(&journal);
    for (int seen = 0; seen < ROUNDS;) {
        waiting++;
        while (round_now == seen) {
            waited++;
            pthread_cond_wait(&changed, &journal);
        }
        seen = round_now;
    }
    pthread_mutex_unlock(&journal);
    return arg;
}

static void lead(void)
{
    for (int i = 1; i <= ROUNDS; i++) {
        while (waiting < i * THREADS)
            usleep(MOMENT_US);
        pthread_mutex_lock(&journal);
        round_now = i;
        pthread_cond_broadcast(&changed);
        usleep(MOMENT_US);
        pthread_mutex_unlock(&journal);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "plain";
    bool condition = strcmp(how, "condition") == 0;
    pthread_t thread[THREADS];
    timed = strcmp(how, "timed") == 0;
    left = strcmp(how, "left") == 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, condition ? follow : append, NULL);
    if (condition)
        lead();
    if (left) {
        usleep(ROUNDS * MOMENT_US);
        take();
        usleep(ROUNDS * MOMENT_US);
    }
    for (int i = 0; i < THREADS && !left; i++)
        pthread_join(thread[i], NULL);
    printf("%d\n", waited);
}
