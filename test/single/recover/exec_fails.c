/* Fails to execute two programs, and goes on. */
#include "../../prog/program.h"

static void *nap(void *arg)
{
    usleep(20000);
    return arg;
}

__attribute__((noipa)) static void nap_afterwards(void)
{
    usleep(20000);
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nap, NULL);
    execl("/nonexistent/one", "one", NULL);
    execl("/nonexistent/other", "other", NULL);
    pthread_join(thread, NULL);
    nap_afterwards();
    return 0;
}
