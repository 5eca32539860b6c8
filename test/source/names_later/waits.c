/*
 * Twice the worker holds vault until main, which wants it, sleeps: the trace has holds of locks
 * that a thread has waited for. Then main signals ready, for which the worker sleeps by then. At
 * the end a third thread waits for stuck.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
void outer(void);
pthread_mutex_t vault = PTHREAD_MUTEX_INITIALIZER, gate = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t stuck[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static atomic_int held, tries, done, waits;
static volatile int open;
static void until_asleep(int tid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    for (int n = 0; n < 3; n += state == 'S') {
        FILE *f = fopen(path, "r");
        if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        fclose(f);
        usleep(2000);
    }
}
static inline __attribute__((always_inline)) void take(void)
{
    pthread_mutex_lock(&vault);
}
static __attribute__((noinline)) void hold_it(int round)
{
    take();
    held = round;
    while (tries != round)
        usleep(100);
    until_asleep(getpid());
    pthread_mutex_unlock(&vault);
    __asm__ volatile("");
}
static void *worker(void *arg)
{
    hold_it(1);
    while (done != 1)
        usleep(100);
    hold_it(2);
    pthread_mutex_lock(&gate);
    waits = gettid();
    while (!open)
        pthread_cond_wait(&ready, &gate);
    pthread_mutex_unlock(&gate);
    return arg;
}
static void *left_behind(void *arg)
{
    waits = gettid();
    pthread_mutex_lock(&stuck[1]);
    return arg;
}
static __attribute__((noinline)) void want_it(int round)
{
    while (held != round)
        usleep(100);
    tries = round;
    pthread_mutex_lock(&vault); // WANT
    pthread_mutex_unlock(&vault);
    done = round;
}
static __attribute__((noinline)) void finish(void)
{
    pthread_mutex_lock(&gate);
    open = 1;
    pthread_cond_signal(&ready); // SIGNAL
    pthread_mutex_unlock(&gate);
}
int main(void)
{
    pthread_t t;
    outer(); // OUTER
    pthread_create(&t, 0, worker, 0);
    want_it(1);
    want_it(2);
    while (!waits)
        usleep(100);
    until_asleep(waits);
    finish();
    pthread_join(t, 0);
    waits = 0;
    pthread_mutex_lock(&stuck[1]);
    pthread_create(&t, 0, left_behind, 0);
    while (!waits)
        usleep(100);
    until_asleep(waits);
    return 0;
}
