/* Storms of short threads beside some longer ones, in two processes. */
#include "../../prog/program.h"
static void *brief(void *arg)
{
    return arg;
}
static void *longer(void *arg)
{
    for (int i = 0; i < 3000; i++)
        sched_yield();
    usleep(40000);
    return arg;
}
static void *storm(void *arg)
{
    for (int i = 0; i < 1500; i++) {
        RUN_THREADS(1, i % 50 ? brief : longer, NULL);
    }
    return arg;
}
int main(void)
{
    pid_t child = 0;
    for (int round = 0; round < 2; round++) {
        RUN_THREADS(4, storm, NULL);
        if (!round)
            child = fork();
    }
    return child ? waitpid(child, 0, 0) != child : 0;
}
