/* Main waits for each of 1,000 mutexes while another thread holds it for a millisecond. */
#include "../../prog/program.h"

enum { LOCKS = 1000 };
static pthread_mutex_t locks[LOCKS];
static sem_t held, next;

static void *hold_all(void *arg)
{
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_lock(&locks[i]);
        sem_post(&held);
        usleep(1000);
        pthread_mutex_unlock(&locks[i]);
        sem_wait(&next);
    }
    return arg;
}

int main(void)
{
    pthread_t holder;
    sem_init(&held, 0, 0);
    sem_init(&next, 0, 0);
    pthread_create(&holder, NULL, hold_all, NULL);
    for (int i = 0; i < LOCKS; i++) {
        sem_wait(&held);
        pthread_mutex_lock(&locks[i]);
        pthread_mutex_unlock(&locks[i]);
        sem_post(&next);
    }
    pthread_join(holder, NULL);
    return 0;
}
