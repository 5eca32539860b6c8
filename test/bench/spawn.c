/*
 * spawn TIMES PROGRAM [ARG…]: runs it so often, one after the other. Prints the µs of CPU that a
 * child took, and how many there were.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double us_of(struct timeval t)
{
    return (double)t.tv_sec * 1e6 + (double)t.tv_usec;
}

static int run(char **argv)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        execvp(*argv, argv);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : 1;
}

int main(int argc, char **argv)
{
    struct rusage used;
    long times = argc > 2 ? atol(argv[1]) : 0;
    for (long i = 0; i < times; i++) {
        if (run(argv + 2) != 0)
            return 1;
    }
    getrusage(RUSAGE_CHILDREN, &used);
    if (times)
        printf("%.1f %ld\n", (us_of(used.ru_utime) + us_of(used.ru_stime)) / (double)times, times);
    return !times;
}
