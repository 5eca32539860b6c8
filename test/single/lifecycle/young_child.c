/* Sleeps 2 s in only_parent, then has a child with a thread. Prints the child's PID. */
#include "../../prog/program.h"

static void *nap(void *arg)
{
    nanosleep(&(struct timespec){0, 10000000}, NULL);
    return arg;
}

static void thread(void)
{
    RUN_THREADS(1, nap, NULL);
}

static void only_parent(void)
{
    nanosleep(&(struct timespec){2, 0}, NULL);
}

int main(void)
{
    only_parent();
    thread();
    pid_t pid = fork();
    if (pid == 0) {
        thread();
        _exit(0);
    }
    printf("%d\n", (int)pid);
    return wait(NULL) < 0;
}
