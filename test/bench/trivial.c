/* Start-up and exit: a thread, and nothing else. */
#include <pthread.h>

static void *nothing(void *arg)
{
    return arg;
}

int main(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL);
}
