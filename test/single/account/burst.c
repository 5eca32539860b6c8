/* A thread that uses the CPU for 0.15 s of the 1.5 s that it lives. */
#include "burn.h"
static void *burst(void *arg)
{
    pthread_setname_np(pthread_self(), "burst");
    burn(0.15);
    sleep(9);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, burst, 0);
    usleep(1500000);
    return 0;
}
