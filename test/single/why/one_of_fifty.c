/* A thread sleeps fifty times in one place: 2 ms each time, and 200 ms once. */
#include <pthread.h>
#include <unistd.h>

static void *work(void *arg)
{
    for (int i = 0; i < 50; i++)
        usleep(i == 30 ? 200000 : 2000);
    return arg;
}

int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    return pthread_join(t, 0);
}
