/*
 * A thousand brief holds before each of 20 long ones, for which another thread waits. Prints for
 * how many ns each long one was held, and waited for.
 */
#include "../../prog/program.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begun, ended;
static double asked;
static void *waiter(void *arg)
{
    for (int i = 0; i < 20; i++) {
        pthread_barrier_wait(&begun);
        usleep(3000);
        asked = now_ns();
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&ended);
    }
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_barrier_init(&ended, NULL, 2);
    pthread_create(&t, NULL, waiter, NULL);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 1003; k++) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
        pthread_mutex_lock(&lock);
        double since = now_ns();
        pthread_barrier_wait(&begun);
        usleep(20000);
        double until = now_ns();
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&ended);
        printf("%.0f %.0f\n", until - since, until - asked);
    }
    pthread_join(t, NULL);
    return 0;
}
