/* Threads are made and end all the time, also when the process does. */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int over;
static void *brief(void *arg)
{
    usleep(300);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}
static void *create(void *arg)
{
    while (!over) {
        pthread_t t;
        if (pthread_create(&t, NULL, brief, NULL) == 0)
            pthread_detach(t);
        usleep(50);
    }
    return arg;
}
static void *work(void *arg)
{
    while (!over) {
        pthread_mutex_lock(&mutex);
        for (volatile int i = 0; i < 20000; i++)
            ;
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    return arg;
}
int main(void)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, i < 2 ? create : work, NULL);
    usleep(500000);
    over = 1;
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    usleep(20000);
    return 0;
}
