/* A thread computes for 0.6 s and ends by exit(2), without libc. */
#include "burn.h"
static void *ends(void *arg)
{
    pthread_setname_np(pthread_self(), "ends");
    burn(0.6);
    syscall(SYS_exit, 0);
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, ends, 0);
    pthread_detach(t);
    sleep(2);
    return 0;
}
