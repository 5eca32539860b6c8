/* 500 threads, one after the other. Prints how many timers the process has in the end. */
#include "../../prog/program.h"
static void *nothing(void *p)
{
    return p;
}
static int timers(void)
{
    char line[256];
    int n = 0;
    FILE *f = fopen("/proc/self/timers", "r");
    while (fgets(line, sizeof line, f))
        n += strncmp(line, "ID:", 3) == 0;
    fclose(f);
    return n;
}
int main(void)
{
    for (int i = 0; i < 500; i++) {
        RUN_THREADS(1, nothing, NULL);
    }
    printf("%d\n", timers());
    return 0;
}
