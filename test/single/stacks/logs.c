/*
 * Two threads in a deadlock of the lock of stdout and a mutex. Prints their TIDs to standard
 * error.
 */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void meet(void)
{
    dprintf(2, "%d\n", gettid());
    pthread_barrier_wait(&both);
}
static void *logs(void *arg)
{
    flockfile(stdout);
    meet();
    pthread_mutex_lock(&mutex);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, logs, NULL);
    meet();
    return puts("never");
}
