/* A thread waits for a mutex while the main thread sleeps so many ms, which then ends as told. */
#include "../../prog/program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *arg)
{
    pthread_mutex_lock(&mutex);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t t;
    pthread_mutex_lock(&mutex);
    pthread_create(&t, NULL, wait_for_it, NULL);
    poll(NULL, 0, atoi(argv[1]));
    if (argc > 2 && strcmp(argv[2], "dies") == 0)
        raise(SIGTERM);
    return 0;
}
