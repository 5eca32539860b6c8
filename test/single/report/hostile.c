/* Threads, tasks, regions and logs whose names are code for a browser: hostile TEXT. */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"

static void *work(void *text)
{
    prctl(PR_SET_NAME, text);
    uint64_t task = gotrace_task_begin(0, text);
    gotrace_log(task, text, text);
    usleep(20000);
    gotrace_task_end(task);
    return NULL;
}

int main(int argc, char **argv)
{
    RUN_THREADS(1, work, argv[argc - 1]);
    return 0;
}
