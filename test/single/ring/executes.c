/*
 * Makes so many events, then becomes another program; with a second argument a thread has ended
 * before.
 */
#include "../../prog/program.h"

static void *nap(void *arg)
{
    usleep(20000);
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc > 2 && pthread_create(&thread, NULL, nap, NULL) == 0)
        pthread_join(thread, NULL);
    for (int i = 0; i < atoi(argv[1]); i++)
        sched_yield();
    execl("/bin/echo", "echo", "another", NULL);
    return 1;
}
