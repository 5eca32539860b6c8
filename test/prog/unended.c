/* Ends while one thread waits for a mutex and another reads from a pipe that nobody fills. */
#include "truth.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];
static _Atomic int waiter, reader;

static void *wait_for_mutex(void *arg)
{
    waiter = tid();
    pthread_mutex_lock(&mutex);
    return arg;
}

static void *wait_for_bytes(void *arg)
{
    char byte;
    reader = tid();
    return read(pipes[0], &byte, 1) == 1 ? arg : NULL;
}

int main(void)
{
    pthread_t thread;
    if (pipe(pipes) != 0)
        return 1;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, wait_for_mutex, NULL);
    pthread_create(&thread, NULL, wait_for_bytes, NULL);
    until_asleep(&waiter);
    until_asleep(&reader);
    exit(0);
}
