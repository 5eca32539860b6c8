/*
 * Half of a program with two static locks of one name: compiled twice, as WHO, with MAIN one of
 * them.
 */
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static void *hold(void *gate)
{
    pthread_setname_np(pthread_self(), WHO "-holder");
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(gate);
        usleep(20000);
        pthread_cond_signal(&news);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(gate);
    }
    return NULL;
}
static void *want(void *gate)
{
    struct timespec now = {0};
    for (int i = 0; i < 5; i++) {
        pthread_barrier_wait(gate);
        pthread_mutex_lock(&lock);
        pthread_cond_timedwait(&news, &lock, &now);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(gate);
    }
    return NULL;
}
static pthread_barrier_t gate;
static pthread_t t[2];
void BEGIN(void)
{
    pthread_barrier_init(&gate, NULL, 2);
    pthread_create(&t[0], NULL, hold, &gate);
    pthread_create(&t[1], NULL, want, &gate);
}
void END(void)
{
    pthread_join(t[0], NULL), pthread_join(t[1], NULL);
}
#ifdef MAIN
void b_begin(void);
void b_end(void);
int main(void)
{
    BEGIN(), b_begin(), END(), b_end();
}
#endif
