/* A thread becomes this program again. Prints the thread's TID. */
#include "../../prog/program.h"
static char **args;
static void *become(void *arg)
{
    usleep(5000);
    printf("%d\n", gettid());
    fflush(stdout);
    execv("/nowhere/at/all", args);
    return arg ? arg : (void *)(long)execv(args[0], (char *[]){"after", "again", NULL});
}
static void *rest(void *arg)
{
    usleep(5000);
    return arg;
}
int main(int argc, char **argv)
{
    args = argv;
    RUN_THREADS(1, argc > 1 ? rest : become, NULL);
}
