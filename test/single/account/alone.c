/*
 * One thread that sleeps 10 ms and computes 5 ms, 50 times. Prints what the kernel says of its
 * time.
 */
#include "../../prog/program.h"
int main(void)
{
    struct timespec t = {0};
    char line[100] = "";
    for (int i = 0; i < 50; i++) {
        usleep(10000);
        for (struct timespec from = t;
             (t.tv_sec - from.tv_sec) * 1000000000 + t.tv_nsec - from.tv_nsec < 5000000;)
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    }
    FILE *f = fopen("/proc/self/schedstat", "r");
    puts(f && fgets(line, sizeof line, f) ? line : "0 0 0");
    return 0;
}
