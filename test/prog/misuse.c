/*
 * gotrace.h used as it should not be, and in strange places. Prints what must be in the trace:
 * "region NAME BEGINS ENDS", "task NAME BEGINS ENDS" and "log MESSAGE COUNT".
 */
#include "program.h"
#include "../../preload/gotrace.h"

static char long_name[3001];
static sem_t one, other;

/* Before any constructor. */
static void early(void)
{
    gotrace_region_end(gotrace_region_begin(gotrace_task_begin(0, "early"), "early"));
    gotrace_log(0, "early", "early");
}
__attribute__((section(".preinit_array"), used)) static void (*const early_at)(void) = early;

static void out_of_order(void)
{
    gotrace_region outer = gotrace_region_begin(0, "outer");
    gotrace_region inner = gotrace_region_begin(0, "inner");
    gotrace_region innermost = gotrace_region_begin(0, "inner");
    gotrace_region_end(outer);
    gotrace_region_end(innermost);
    gotrace_region_end(inner);
    gotrace_region_end(outer);
    gotrace_region_end(0);
    gotrace_region_end(~0ull);
}

static void *end_it(void *region)
{
    gotrace_region_begin(0, "left open");
    gotrace_region_end(*(gotrace_region *)region);
    gotrace_region_end(gotrace_region_begin(0, "in a thread"));
    return NULL;
}

static void another_thread(void)
{
    gotrace_region region = gotrace_region_begin(0, "not yours");
    RUN_THREADS(1, end_it, &region);
    gotrace_region_end(region);
}

static void tasks(void)
{
    gotrace_task task = gotrace_task_begin(99, "task");
    gotrace_task_end(task);
    gotrace_task_end(task);
    gotrace_task_end(0);
    gotrace_task_end(123456789);
    gotrace_region_end(gotrace_region_begin(123456789, "of no task"));
    gotrace_log(~0ull, "c", "of no task");
    gotrace_task_begin(task, "never ended");
}

static void too_many(void)
{
    gotrace_region region[100];
    for (int i = 0; i < 100; i++)
        region[i] = gotrace_region_begin(0, "many");
    for (int i = 0; i < 100; i++)
        gotrace_region_end(region[99 - i]);
}

static void texts(void)
{
    gotrace_region_end(gotrace_region_begin(0, long_name));
    gotrace_region_end(gotrace_region_begin(0, NULL));
    gotrace_region_end(gotrace_region_begin(0, ""));
    gotrace_log(0, long_name, long_name);
    gotrace_log(0, NULL, NULL);
    gotrace_log(0, "bytes", "\xff\xfe\x80");
    gotrace_task_end(gotrace_task_begin(0, NULL));
}

/* A name that changes while the region is open: it ends with the one it began with. */
static void changing(void)
{
    char name[] = "before";
    gotrace_region region = gotrace_region_begin(0, name);
    strcpy(name, "after");
    gotrace_region_end(region);
}

static gotrace_region interrupted;

static void handler(int signal)
{
    (void)signal;
    gotrace_region_end(interrupted);
    gotrace_region_begin(0, "in a handler");
    gotrace_log(0, "", "in a handler");
    gotrace_task_begin(0, "in a handler");
    sem_post(&other);
}

/* The handler runs in the middle of a wait, where nothing can be written. */
static void *wait_for_signal(void *unused)
{
    interrupted = gotrace_region_begin(0, "interrupted");
    gotrace_region_begin(0, "interrupted");
    sem_post(&one);
    while (sem_wait(&other) != 0)
        ;
    gotrace_region_end(gotrace_region_begin(0, "after the signal"));
    return unused;
}

static void signals(void)
{
    pthread_t thread;
    signal(SIGUSR1, handler);
    pthread_create(&thread, NULL, wait_for_signal, NULL);
    sem_wait(&one);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
}

/* A child has no trace before it makes a thread, and then its own. */
static void forked(void)
{
    gotrace_task task = gotrace_task_begin(0, "parent");
    gotrace_region region = gotrace_region_begin(task, "parent");
    if (fork() == 0) {
        gotrace_region_end(region);
        another_thread();
        gotrace_task_end(task);
        gotrace_region_end(region);
        _exit(0);
    }
    wait(NULL);
    gotrace_region_end(region);
    gotrace_task_end(task);
}

/* Open while the trace goes from one generation to the next: three of them here. */
static void generations(void)
{
    gotrace_region region = gotrace_region_begin(0, "long");
    gotrace_region inner = gotrace_region_begin(0, "long");
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    gotrace_region_end(inner);
    gotrace_region_end(region);
}

int main(void)
{
    for (int i = 0; i < 3000; i += 2)
        memcpy(long_name + i, "\xc3\xa4", 2);
    memmove(long_name + 1, long_name, 2999);
    long_name[0] = 'x';
    sem_init(&one, 0, 0);
    sem_init(&other, 0, 0);
    errno = 1234;
    out_of_order();
    another_thread();
    tasks();
    too_many();
    texts();
    changing();
    signals();
    generations();
    gotrace_log(0, "errno", errno == 1234 ? "kept" : "changed");
    forked();
    printf("region\touter\t1\t1\nregion\tinner\t2\t2\nregion\tnot yours\t1\t1\nregion\tleft "
           "open\t1\t0\n"
           "region\tin a thread\t1\t1\nregion\tof no task\t1\t1\nregion\tmany\t64\t64\n"
           "region\t%.*s\t1\t1\nregion\t\t2\t2\nregion\tbefore\t1\t1\nregion\tinterrupted\t2\t2\n"
           "region\tafter the signal\t1\t1\nregion\tparent\t1\t1\nregion\tlong\t2\t2\n",
           1023, long_name);
    printf("task\ttask\t1\t1\ntask\tnever ended\t1\t0\ntask\t\t1\t1\ntask\tparent\t1\t1\n");
    printf("log\tof no task\t1\nlog\t%.*s\t1\nlog\t\t1\nlog\tkept\t1\n", 1023, long_name);
    return 0;
}
