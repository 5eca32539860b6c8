/*
 * A thread sleeps with the lock that another one waits for; a third one sleeps without any. With an
 * argument the lock is a semaphore of one.
 */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t token;
static bool has_token;
static volatile int over;
__attribute__((noinline)) static void lock(void)
{
    if (has_token)
        sem_wait(&token);
    else
        pthread_mutex_lock(&mutex);
}
__attribute__((noinline)) static void unlock(void)
{
    if (has_token)
        sem_post(&token);
    else
        pthread_mutex_unlock(&mutex);
}
static void *holder(void *arg)
{
    for (int i = 0; i < 20; i++) {
        lock();
        usleep(5000);
        unlock();
        usleep(200);
    }
    over = 1;
    return arg;
}
static void *periodic(void *arg)
{
    while (!over)
        usleep(3000);
    return arg;
}
static void *client(void *arg)
{
    while (!over) {
        lock();
        unlock();
        usleep(100);
    }
    return arg;
}
int main(int argc, char **argv)
{
    (void)argv;
    has_token = argc > 1;
    sem_init(&token, 0, 1);
    pthread_t t[3];
    pthread_create(&t[0], 0, holder, 0);
    pthread_create(&t[1], 0, client, 0);
    pthread_create(&t[2], 0, periodic, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
    return 0;
}
