/*
 * A thread whose pthread_cond_timedwait is over after 1 s, and that has to wait 2 s more for the
 * mutex. Prints how many ns it waited.
 */
#include "../../prog/program.h"
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waits;
static void *late(void *arg)
{
    struct timespec until, begin, end;
    pthread_mutex_lock(&mutex);
    clock_gettime(CLOCK_REALTIME, &begin);
    until = (struct timespec){begin.tv_sec + 1, begin.tv_nsec};
    waits = 1;
    pthread_cond_timedwait(&cond, &mutex, &until);
    clock_gettime(CLOCK_REALTIME, &end);
    pthread_mutex_unlock(&mutex);
    printf("%ld", (end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, late, NULL);
    for (int begun = 0; !begun;) {
        pthread_mutex_lock(&mutex);
        if ((begun = waits))
            sleep(3);
        pthread_mutex_unlock(&mutex);
        usleep(1000);
    }
    pthread_join(t, NULL);
    return 0;
}
