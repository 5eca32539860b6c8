/*
 * One thread that computes for a second, 90 calls deep. Prints the number of other threads, its
 * CPU time and the wall-clock time in µs.
 */
#include <dirent.h>

#include "../../prog/program.h"
static volatile long sink;
__attribute__((noinline)) static void deep(int n)
{
    if (n)
        deep(n - 1);
    else
        for (int i = 0; i < 1000000; i++)
            sink += i;
    sink++;
}
int main(void)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (clock() < CLOCKS_PER_SEC)
        deep(90);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int threads = 0;
    for (DIR *d = opendir("/proc/self/task"); readdir(d);)
        threads++;
    long wall = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
    printf("%d %ld %ld\n", threads - 2, clock(), wall);
    return 0;
}
