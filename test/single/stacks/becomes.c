/* Six threads wait, the seventh executes this program again every 1.5 ms. */
#include "../../prog/program.h"
static char **args;
static void *idle(void *arg)
{
    pause();
    return arg;
}
static void *again(void *arg)
{
    usleep(1500);
    execv(args[0], args);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    args = argv;
    for (int i = 0; i < 6; i++)
        pthread_create(&thread, NULL, idle, NULL);
    pthread_create(&thread, NULL, again, NULL);
    return argc ? pause() : 1;
}
