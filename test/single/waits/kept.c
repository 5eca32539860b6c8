/*
 * The main thread gives a mutex up between two waits. Before that it gives up mutexes of all slots
 * of the registry, and after that another thread keeps as many. A log says "once" or "again" before
 * each wait: whether the main thread has kept the mutex since its last wait.
 */
#include "../../../preload/gotrace.h"
#include "../../prog/program.h"

enum { ENOUGH = 32768 }; /* mutexes for all slots */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, others[ENOUGH];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, elsewhere = PTHREAD_COND_INITIALIZER;

static void try_once(pthread_cond_t *at, pthread_mutex_t *with)
{
    struct timespec past = {1, 0};
    pthread_cond_timedwait(at, with, &past);
}

static void wait_long(const char *how)
{
    struct timespec end = after(CLOCK_REALTIME, 20000000);
    gotrace_log(0, "kept", how);
    pthread_cond_timedwait(&cond, &mutex, &end);
}

static void *keep_others(void *arg)
{
    for (int i = 0; i < ENOUGH; i++) {
        pthread_mutex_lock(&others[i]);
        try_once(&elsewhere, &others[i]);
    }
    return arg;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    wait_long("once");
    wait_long("again");
    for (int i = 0; i < ENOUGH; i++) {
        pthread_mutex_lock(&others[i]);
        pthread_mutex_unlock(&others[i]);
    }
    pthread_mutex_unlock(&mutex);
    pthread_create(&thread, NULL, keep_others, NULL);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&mutex);
    wait_long("once");
    pthread_mutex_unlock(&mutex);
    return 0;
}
