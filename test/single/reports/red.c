/* A thread whose name would control a terminal. */
#include "../../prog/program.h"
static void *named(void *arg)
{
    pthread_setname_np(pthread_self(), "\033[31mred\n");
    usleep(1000);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, named, 0);
    return pthread_join(t, 0);
}
