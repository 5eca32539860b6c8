/* Three clients wait for the answers of a slow thread. */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, changed = PTHREAD_COND_INITIALIZER;
static int asked, done, over;
__attribute__((noinline)) static void call(void)
{
    pthread_mutex_lock(&mutex);
    int mine = ++asked;
    pthread_cond_signal(&work);
    while (done < mine)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}
static void *client(void *arg)
{
    for (int i = 0; i < 40; i++) {
        call();
        usleep(500);
    }
    return arg;
}
static void *server(void *arg)
{
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (done == asked && !over)
            pthread_cond_wait(&work, &mutex);
        if (over)
            break;
        pthread_mutex_unlock(&mutex);
        usleep(2000);
        pthread_mutex_lock(&mutex);
        done++;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mutex);
    return arg;
}
int main(void)
{
    pthread_t s;
    pthread_create(&s, 0, server, 0);
    usleep(200000); /* so that it waits */
    RUN_THREADS(3, client, NULL);
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&mutex);
    return pthread_join(s, 0);
}
