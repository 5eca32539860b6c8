/* A child of vfork dies of a signal; later its parent does, too. */
#include "../../prog/program.h"
static void *nap(void *arg)
{
    usleep(1000);
    return arg;
}
int main(void)
{
    int status;
    RUN_THREADS(1, nap, NULL);
    pid_t child = vfork();
    if (!child) {
        kill(getpid(), SIGTERM);
        _exit(1);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
        return 1;
    usleep(1000);
    raise(SIGSEGV);
}
