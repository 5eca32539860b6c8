/*
 * Makes ever new ones of something, as a program does that runs for months. Usage: churn WHAT COUNT
 * [LIBRARY...]; tells its resident memory (KiB) at each tenth of the way.
 *
 * libraries: loads and unloads each in turn and calls its outer(), while another thread waits here
 * and there.
 * stacks: waits on ever new stacks, in two threads; alone: in one, without another. names: gives
 * itself ever new names. threads: threads that begin and end; idle: that begin and wait. forks:
 * children, with threads and new stacks of their own, while another thread waits on ever new
 * stacks.
 */
#include "program.h"

static long count;
static char **libraries;
static int n_libraries;
static _Atomic int over;

static void tell(long done)
{
    long pages = 0;
    if (done % (count / 10))
        return;
    if (done == count / 10)
        usleep(500000); /* by then a file has been begun, and what that takes is there */
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(f);
    printf("%ld\n", pages * (sysconf(_SC_PAGESIZE) / 1024));
    fflush(stdout);
}

/* Waits for a post that never comes, with a timeout that is over. */
static void wait_in_vain(void)
{
    static sem_t never;
    sem_timedwait(&never, &(struct timespec){1, 0});
}

static void load(long i)
{
    void *lib = dlopen(libraries[i % n_libraries], RTLD_NOW);
    void (*outer)(void) = (void (*)(void))dlsym(lib, "outer");
    outer();
    dlclose(lib);
}

static void one(uint64_t path, int depth);

/* A stack for each path: of every bit the call of one or the other. */
static __attribute__((noinline)) void zero(uint64_t path, int depth)
{
    if (!depth)
        wait_in_vain();
    else if (path & 1)
        one(path >> 1, depth - 1);
    else
        zero(path >> 1, depth - 1);
    __asm__ volatile(""); /* no tail call */
}

static __attribute__((noinline)) void one(uint64_t path, int depth)
{
    if (!depth)
        wait_in_vain();
    else if (path & 1)
        one(path >> 1, depth - 1);
    else
        zero(path >> 1, depth - 1);
    __asm__ volatile("");
}

enum { DEPTH = 24, SOME = 32 };

static void *wait_often(void *arg)
{
    while (!over) {
        usleep(1000);
        for (uint64_t i = 0; i < SOME; i++)
            zero(i, DEPTH);
    }
    return arg;
}

static void call(long i)
{
    zero((uint64_t)i, DEPTH);
}

static void *call_others(void *arg)
{
    for (long i = 0; i < count; i++)
        one((uint64_t)i, DEPTH);
    return arg;
}

static void name(long i)
{
    char text[16];
    snprintf(text, sizeof text, "name %lx", i);
    pthread_setname_np(pthread_self(), text);
}

static void *nothing(void *arg)
{
    return arg;
}

static void thread(long i)
{
    pthread_t t;
    (void)i;
    if (pthread_create(&t, NULL, nothing, NULL) != 0)
        exit(1);
    pthread_join(t, NULL);
}

static _Atomic long begun;

static void *wait_for_ever(void *unused)
{
    static sem_t never;
    begun++;
    sem_wait(&never);
    return unused;
}

/* It wakes nobody, nor is it woken. */
static void idle(long i)
{
    pthread_t t;
    if (pthread_create(&t, NULL, wait_for_ever, NULL) != 0)
        exit(1);
    while (begun <= i)
        sched_yield();
}

static void *call_some(void *arg)
{
    for (uint64_t i = 0; i < 4 * SOME; i++)
        zero(i, DEPTH);
    return arg;
}

static void *call_for_ever(void *arg)
{
    for (uint64_t i = 0; !over; i++)
        one(i, DEPTH);
    return arg;
}

/* Children with a PID that none had before: a trace has the name of the last one with its PID. */
static long pids;

static void count_pid(pid_t pid)
{
    enum { PIDS = 1 << 22 };
    static unsigned char had[PIDS / 8];
    unsigned bit = 1u << pid % 8;
    pids += !(had[pid / 8] & bit);
    had[pid / 8] |= (unsigned char)bit;
}

static void child(long i)
{
    pthread_t t;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        int bad = pthread_create(&t, NULL, call_some, NULL);
        call_some(NULL);
        exit(bad || pthread_join(t, NULL));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "child %ld: status %x\n", i, (unsigned)status);
        exit(1);
    }
    count_pid(pid);
}

static const struct {
    const char *name;
    void (*make)(long i);
    void *(*beside)(void *);
} kinds[] = {
    {"libraries", load, wait_often}, {"stacks", call, call_others}, {"alone", call, NULL},
    {"names", name, wait_often},     {"threads", thread, NULL},     {"idle", idle, NULL},
    {"forks", child, call_for_ever},
};

int main(int argc, char **argv)
{
    pthread_t beside;
    count = argc > 2 ? atol(argv[2]) : 1000;
    libraries = argv + 3;
    n_libraries = argc - 3;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (argc < 2 || strcmp(argv[1], kinds[k].name) != 0)
            continue;
        if (kinds[k].beside)
            pthread_create(&beside, NULL, kinds[k].beside, NULL);
        for (long i = 0; i < count; i++) {
            kinds[k].make(i);
            tell(i + 1);
        }
        over = 1;
        if (pids)
            fprintf(stderr, "%ld PIDs\n", pids);
        if (kinds[k].beside)
            pthread_join(beside, NULL);
        return 0;
    }
    return 2;
}
