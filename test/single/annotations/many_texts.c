/*
 * Logs, tasks and regions with texts that never come again. Prints by how many KiB that made the
 * process grow.
 */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"
static long rss(void)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, f))
        sscanf(line, "VmRSS: %ld", &kb);
    fclose(f);
    return kb;
}
static void many(int n)
{
    char s[512];
    memset(s, 'x', sizeof s);
    for (int i = 0; i < n; i++) {
        snprintf(s + 400, 100, "%d %d", n, i);
        gotrace_task task = gotrace_task_begin(0, s);
        gotrace_region region = gotrace_region_begin(task, s);
        gotrace_log(task, "category", s);
        gotrace_region_end(region);
        gotrace_task_end(task);
    }
}
int main(void)
{
    many(200000);
    long before = rss();
    many(200001);
    printf("%ld\n", rss() - before);
}
