/* A thread that begins in a handler, because a signal was pending for it. */
#include "burners.h"
static void handler(int number)
{
    (void)number;
    usleep(1000);
    spin(0.1);
    usleep(1000);
}
int main(void)
{
    sigset_t set;
    pthread_attr_t attr;
    pthread_t thread;
    double seconds = 0.6;
    void *all;
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, NULL);
    sigemptyset(&set);
    pthread_attr_init(&attr);
    pthread_attr_setsigmask_np(&attr, &set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    pthread_create(&thread, &attr, burn, &seconds);
    pthread_join(thread, &all);
    return 0;
}
