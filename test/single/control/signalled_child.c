/* A child sends itself the signal that controls the recording before it has recorded anything. */
#include "../../prog/program.h"
static void *nap(void *arg)
{
    usleep(50000);
    return arg;
}
static void thread(void)
{
    RUN_THREADS(1, nap, NULL);
}
int main(void)
{
    thread();
    pid_t child = fork();
    if (!child) {
        raise(SIGUSR2);
        usleep(1);
        thread();
        _exit(0);
    }
    waitpid(child, NULL, 0);
}
