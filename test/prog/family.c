/*
 * A parent and two children: one waits for a mutex in shared memory that the parent holds, the
 * other one reads from a pipe. Prints what happened when, by CLOCK_MONOTONIC, a line for each log
 * "step NAME" in the traces: at NAME <pid> <ns before the log> <ns after it>. And how long the wait
 * for the mutex was: wait <pid> <least ns> <most ns>. family SECONDS: the children are in a time
 * namespace of their own, whose CLOCK_MONOTONIC is so far ahead. Exit status 77: not permitted.
 */
#include "truth.h"

#include "../../preload/gotrace.h"

static struct shared {
    pthread_mutex_t mutex;
    _Atomic int waiter, reader; /* threads, once they are about to wait */
    _Atomic uint64_t asleep;    /* when the waiter was seen so */
    _Atomic uint64_t given;     /* just before the mutex was */
} * shared;

static uint64_t ahead; /* of a child; ns */

static void say(const char *what)
{
    uint64_t before = now() - ahead;
    gotrace_log(0, "step", what);
    uint64_t after = now() - ahead;
    dprintf(1, "at %s %d %llu %llu\n", what, getpid(), (unsigned long long)before,
            (unsigned long long)after);
}

static void *help(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "helper");
    usleep(5000);
    return NULL;
}

/* The process is recorded from here on. */
static void get_help(void)
{
    RUN_THREADS(1, help, NULL);
}

static void wait_for_mutex(int unused)
{
    (void)unused;
    get_help();
    say("child-waits");
    shared->waiter = tid();
    uint64_t start = now();
    pthread_mutex_lock(&shared->mutex);
    uint64_t end = now();
    say("child-has-it");
    pthread_mutex_unlock(&shared->mutex);
    dprintf(1, "wait %d %llu %llu\n", getpid(),
            (unsigned long long)(shared->given - shared->asleep),
            (unsigned long long)(end - start));
}

static void read_pipe(int from)
{
    char byte;
    get_help();
    say("child-reads");
    shared->reader = tid();
    if (read(from, &byte, 1) == 1)
        say("child-read");
}

/* CLONE_NEWTIME is a flag of unshare(2) since Linux 5.6, and in sched.h since glibc 2.36. */
static bool set_childrens_clock(const char *seconds)
{
    enum { NEWTIME = 0x80 };
    FILE *offsets = unshare(NEWTIME) == 0 ? fopen("/proc/self/timens_offsets", "w") : NULL;
    return offsets && fprintf(offsets, "monotonic %s 0\n", seconds) > 0 && fclose(offsets) == 0;
}

static pid_t make(void (*run)(int), int argument, const char *seconds)
{
    pid_t child = fork();
    if (child)
        return child;
    ahead = (uint64_t)(atoll(seconds) * 1000000000);
    run(argument);
    exit(0);
}

int main(int argc, char **argv)
{
    int ends[2];
    const char *seconds = argc > 1 ? argv[1] : "0";
    if (argc > 1 && !set_childrens_clock(seconds))
        return 77;
    pthread_mutexattr_t attr;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(ends) != 0)
        return 1;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attr);
    get_help();
    say("parent-begins");
    pthread_mutex_lock(&shared->mutex);
    pid_t waiter = make(wait_for_mutex, 0, seconds), reader = make(read_pipe, ends[0], seconds);
    until_asleep(&shared->waiter);
    shared->asleep = now();
    until_asleep(&shared->reader);
    usleep(40000);
    say("parent-gives");
    shared->given = now();
    pthread_mutex_unlock(&shared->mutex);
    usleep(20000);
    say("parent-writes");
    if (write(ends[1], "", 1) != 1)
        return 1;
    waitpid(waiter, NULL, 0);
    waitpid(reader, NULL, 0);
    say("parent-ends");
    return 0;
}
