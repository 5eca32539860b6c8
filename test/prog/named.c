/* Threads named after the arguments, which wait for one lock. */
#include "program.h"

enum { THREADS_MAX = 16, ROUNDS = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *named(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        usleep(1000);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[THREADS_MAX];
    for (int i = 1; i < argc; i++)
        pthread_create(&t[i - 1], NULL, named, argv[i]);
    for (int i = 1; i < argc; i++)
        pthread_join(t[i - 1], NULL);
    return 0;
}
