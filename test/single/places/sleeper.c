/* A thread sleeps with the lock that another one waits for; a third one sleeps without any. */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static void *holder(void *arg)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&mutex);
        usleep(5000);
        pthread_mutex_unlock(&mutex);
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
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    return arg;
}
int main(void)
{
    pthread_t t[3];
    pthread_create(&t[0], 0, holder, 0);
    pthread_create(&t[1], 0, client, 0);
    pthread_create(&t[2], 0, periodic, 0);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], 0);
    return 0;
}
