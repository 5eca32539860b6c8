/*
 * A thread makes children, by fork and by vfork, that execute this program at once. Prints its
 * TID.
 */
#include "../../prog/program.h"
static char **args;
static void make_by_fork(void)
{
    if (fork() == 0)
        _exit(execl(args[0], "made", "again", NULL));
    wait(NULL);
}
static void *run(void *arg)
{
    dprintf(1, "%d\n", gettid());
    make_by_fork();
    if (vfork() == 0)
        _exit(execl(args[0], "made", "again", NULL));
    wait(NULL);
    return arg;
}
int main(int argc, char **argv)
{
    args = argv;
    if (argc > 1)
        return usleep(2000);
    RUN_THREADS(1, run, NULL);
}
