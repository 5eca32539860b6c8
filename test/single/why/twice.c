/*
 * Two threads sleep 60 ms each, beside main's 300 ms: 30 ms in each of two calls on one line.
 */
#include <pthread.h>
#include <unistd.h>

static void *nap(void *arg)
{
    usleep(30000), usleep(30000);
    return arg;
}

int main(void)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, nap, NULL);
    usleep(300000);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
