/* The first thread ends with a mutex that another thread waits for. */
#include "../../prog/program.h"
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static void *heir(void *arg)
{
    pthread_mutex_lock(&left);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_mutex_lock(&left);
    pthread_create(&t, NULL, heir, NULL);
    pthread_exit(NULL);
}
