/*
 * A thread whose creation no hook sees: pthread_create is taken from libc itself.
 */
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *unseen(void *arg)
{
    struct timespec ms10 = {0, 10000000};
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        nanosleep(&ms10, NULL);
    }
    return arg;
}

int main(void)
{
    pthread_t thread;
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    __typeof__(&pthread_create) create = (__typeof__(&pthread_create))dlsym(libc, "pthread_create");
    if (create(&thread, NULL, unseen, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    puts("joined");
    return 0;
}
