/*
 * Sleeps in and out of a region and a task that are both called wanted; another thread takes part
 * in the task.
 */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"

static gotrace_task handed;
__attribute__((noinline)) static void inside(void)
{
    usleep(20000);
}
__attribute__((noinline)) static void outside(void)
{
    usleep(10000);
}
__attribute__((noinline)) static void elsewhere(void)
{
    usleep(15000);
}
static void *worker(void *arg)
{
    elsewhere();
    gotrace_region part = gotrace_region_begin(handed, "part");
    inside();
    gotrace_region_end(part);
    outside();
    return arg;
}
int main(void)
{
    gotrace_region wanted = gotrace_region_begin(0, "wanted");
    inside();
    gotrace_region_end(wanted);
    outside();
    handed = gotrace_task_begin(0, "wanted");
    RUN_THREADS(1, worker, NULL);
    gotrace_task_end(handed);
    elsewhere();
    return 0;
}
