/* Two threads wait for a mutex on a stack, which is overwritten. */
#include "../../prog/program.h"
static void *wait_for(void *mutex)
{
    pthread_mutex_lock(mutex);
    return NULL;
}
static void *has_one(void *at)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    *(pthread_mutex_t **)at = &mutex;
    pthread_mutex_lock(&mutex);
    pthread_t held;
    pthread_create(&held, NULL, wait_for, &mutex);
    return wait_for(&mutex);
}
int main(void)
{
    pthread_mutex_t *volatile mutex = NULL;
    pthread_t thread;
    pthread_create(&thread, NULL, has_one, (void *)&mutex);
    getchar();
    mutex->__data.__owner = 0;
    mutex->__data.__lock = 0;
    puts("free");
    fflush(stdout);
    return pause();
}
