/*
 * Calls daemon where fork fails, once the trace is there. Prints what it returned, and whether
 * errno was EAGAIN.
 */
#include "../../prog/program.h"

static void *nap(void *arg)
{
    usleep(1000);
    return arg;
}

int main(int argc, char **argv)
{
    RUN_THREADS(1, nap, NULL);
    while (argc > 1 && access(argv[1], F_OK) != 0) /* the trace, which is open from then on */
        usleep(1000);
    setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0});
    if (setuid(12345) != 0)
        return 1;
    int r = daemon(1, 1);
    printf("%d %d\n", r, errno == EAGAIN);
    return 0;
}
