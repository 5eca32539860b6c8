/*
 * Starts and stops 100 recordings while threads sleep. Prints by how many KiB the last 80 made the
 * process grow.
 */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"
static void *nap(void *arg)
{
    for (;;)
        usleep(500);
    return arg;
}
static long pages(void)
{
    long n = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (fscanf(f, "%ld", &n) != 1)
        n = 0;
    fclose(f);
    return n;
}
int main(void)
{
    pthread_t t;
    long before = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&t, 0, nap, 0);
    for (int i = 0; i < 100; i++) {
        if (i == 20)
            before = pages();
        gotrace_start();
        usleep(1000);
        gotrace_stop();
    }
    printf("%ld\n", (pages() - before) * 4);
    return 0;
}
