/* Workers that give each other work, and one that finds a queue full. */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static int jobs = 2, done, items = 3, fetched;
__attribute__((noinline)) static int take(void)
{
    pthread_mutex_lock(&mutex);
    while (!jobs && done < 60)
        pthread_cond_wait(&some, &mutex);
    int more = done < 60;
    jobs--;
    pthread_mutex_unlock(&mutex);
    return more;
}
__attribute__((noinline)) static void hand_over(void)
{
    pthread_mutex_lock(&mutex);
    jobs++;
    if (++done < 60)
        pthread_cond_signal(&some);
    else
        pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&mutex);
}
static void *passer(void *arg)
{
    while (take()) {
        usleep(10000);
        hand_over();
    }
    return arg;
}
__attribute__((noinline)) static void add(void)
{
    pthread_mutex_lock(&mutex);
    while (items == 3)
        pthread_cond_wait(&room, &mutex);
    items++;
    pthread_mutex_unlock(&mutex);
}
static void *maker(void *arg)
{
    for (int i = 0; i < 30; i++)
        add();
    return arg;
}
static void *fetcher(void *arg)
{
    while (fetched < 30) {
        usleep(1000);
        pthread_mutex_lock(&mutex);
        fetched += items > 0;
        items -= items > 0;
        pthread_cond_signal(&room);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}
int main(void)
{
    void *(*const routine[])(void *) = {maker, fetcher, passer, passer, passer, passer};
    pthread_t t[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&t[i], 0, routine[i], 0);
    for (int i = 0; i < 6; i++)
        pthread_join(t[i], 0);
    return 0;
}
