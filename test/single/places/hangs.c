/*
 * Ends while two threads are in a deadlock, or while one waits for a signal that was sent before.
 */
#include "../../prog/program.h"
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static int waiting; /* behind a */
static void *one(void *arg)
{
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&b);
    return arg;
}
static void *other(void *arg)
{
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return arg;
}
static void *waits(void *arg)
{
    pthread_mutex_lock(&a);
    waiting++;
    for (;;)
        pthread_cond_wait(&cond, &a);
    return arg;
}
static void *hears(void *arg)
{
    pthread_mutex_lock(&a);
    waiting++;
    pthread_cond_wait(&cond, &a);
    pthread_mutex_unlock(&a);
    return arg;
}
/* Takes a, when that many have begun to wait. */
static void lock_behind(int n)
{
    pthread_mutex_lock(&a);
    while (waiting < n) {
        pthread_mutex_unlock(&a);
        sched_yield();
        pthread_mutex_lock(&a);
    }
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    pthread_barrier_init(&both, 0, 2);
    if (strcmp(argv[1], "deadlock") == 0) {
        pthread_create(&t[0], 0, one, 0);
        pthread_create(&t[1], 0, other, 0);
        usleep(300000);
        return argc - 2;
    }
    pthread_create(&t[0], 0, hears, 0); /* it is waited for: signals are counted from then on */
    lock_behind(1);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&a);
    pthread_join(t[0], 0);
    pthread_mutex_lock(&a);
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&a);
    pthread_create(&t[1], 0, waits, 0);
    lock_behind(2);
    pthread_mutex_unlock(&a);
    usleep(300000);
    return argc - 2;
}
