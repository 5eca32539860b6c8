/*
 * What a part of a trace, out of its middle, has to say of threads that wait all the time: a worker
 * wants a lock that the main thread holds, in a task and two regions; another one reads from a
 * pipe. When both are asleep in the kernel, the main thread computes, says "middle", computes, and
 * lets them go. Prints the tids: main, worker, reader; and for how long each part of that took, in
 * ns. With an argument: so many pairs of events more, before and after.
 */
#include "../../preload/gotrace.h"
#include "truth.h"

enum { HALF_MS = 150 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int worker_tid, reader_tid;
static int ends[2];
static long more;

static __attribute__((noinline)) void look_up(void)
{
    pthread_mutex_lock(&table_lock);
    pthread_mutex_unlock(&table_lock);
}

static void *worker(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    gotrace_task task = gotrace_task_begin(0, "request");
    gotrace_region outer = gotrace_region_begin(task, "outer");
    gotrace_region inner = gotrace_region_begin(task, "inner");
    worker_tid = tid();
    look_up();
    gotrace_region_end(inner);
    gotrace_region_end(outer);
    gotrace_task_end(task);
    return unused;
}

static void *reader(void *unused)
{
    char byte;
    pthread_setname_np(pthread_self(), "reader");
    reader_tid = tid();
    if (read(ends[0], &byte, 1) != 1)
        exit(EXIT_FAILURE);
    return unused;
}

static void say_more(void)
{
    for (long i = 0; i < more; i++)
        gotrace_region_end(gotrace_region_begin(0, "more"));
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    more = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (pipe(ends) != 0)
        return EXIT_FAILURE;
    pthread_setname_np(pthread_self(), "boss");
    pthread_mutex_lock(&table_lock);
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    until_asleep(&worker_tid);
    until_asleep(&reader_tid);
    uint64_t begin = now();
    say_more();
    busy(HALF_MS * MS);
    uint64_t middle = now();
    gotrace_log(0, "note", "middle");
    busy(HALF_MS * MS);
    say_more();
    uint64_t end = now();
    pthread_mutex_unlock(&table_lock);
    if (write(ends[1], "x", 1) != 1)
        return EXIT_FAILURE;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%d %d %d %llu %llu\n", (int)getpid(), worker_tid, reader_tid,
           (unsigned long long)(middle - begin), (unsigned long long)(end - middle));
    return 0;
}
