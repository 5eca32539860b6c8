/* Logs 40,000 numbers among yields, then saves the flight recorder if it is given a path. */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"
static void *nothing(void *arg)
{
    return arg;
}
int main(int argc, char **argv)
{
    char s[32];
    RUN_THREADS(1, nothing, NULL);
    for (int i = 0; i < 40000; i++) {
        snprintf(s, sizeof s, "%d", i);
        gotrace_log(0, "", s);
        for (int k = 0; k < 4; k++)
            sched_yield();
    }
    return argc > 1 ? gotrace_snapshot(argv[1]) : 0;
}
