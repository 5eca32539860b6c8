/*
 * Programs that start and stop their own recording, or let others do so. The first argument says
 * what; each prints what it knows to be true.
 *
 *   late          threads that wait in every way when recording starts; a line for each:
 *                 <hook> <kernel thread that waits> <kernel thread that ends it> <state>
 *   cycles N      N recordings, one after the other, of threads that never rest
 *   load          the same threads until standard input ends; tells at each byte how much they did
 *   fork          a child forked while nothing is recorded records itself
 *   idle          two threads that wait until standard input ends; prints their ids
 *   alone         the same without threads, in short reads
 *   results       what the functions return when called at the wrong time
 */
#include "asleep.h"
#include "libc.h"

#pragma weak gotrace_start
#pragma weak gotrace_stop
#pragma weak gotrace_snapshot
int gotrace_start(void);
int gotrace_stop(void);
int gotrace_snapshot(const char *path);

static int started(void)
{
    return gotrace_start ? gotrace_start() : ENOSYS;
}

static int stopped(void)
{
    return gotrace_stop ? gotrace_stop() : ENOSYS;
}

static pid_t tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* Waiting for ever ---------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static int pipes[2];
static bool signalled;
static _Atomic int done;
static pthread_t sleeper;

static void wait_mutex(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void wait_cond(void)
{
    pthread_mutex_lock(&cond_mutex);
    while (!signalled)
        pthread_cond_wait(&cond, &cond_mutex);
    pthread_mutex_unlock(&cond_mutex);
}

static void wait_rwlock(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
}

DO(wait_sem, sem_wait(&sem))

static void wait_read(void)
{
    char byte;
    if (read(pipes[0], &byte, 1) != 1)
        abort();
}

static void wait_sleep(void)
{
    usleep(50000000); /* or until a signal comes */
}

DO(wait_join, pthread_join(sleeper, NULL))

static void compute(void)
{
    while (!done)
        ;
}

DO(end_mutex, pthread_mutex_unlock(&mutex))

static void end_cond(void)
{
    pthread_mutex_lock(&cond_mutex);
    signalled = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&cond_mutex);
}

DO(end_rwlock, pthread_rwlock_unlock(&rwlock))
DO(end_sem, sem_post(&sem))

static void end_read(void)
{
    if (write(pipes[1], "x", 1) != 1)
        abort();
}

DO(end_compute, done = 1)

static void on_signal(int number)
{
    (void)number;
}

DO(end_sleep, pthread_kill(sleeper, SIGUSR1))

static void nothing(void)
{
}

enum who { MAIN, ITSELF, SLEEPER };

static struct kind {
    const char *hook;
    void (*wait)(void), (*end)(void);
    enum who ender;
    const char *state;
    pthread_t thread;
    _Atomic pid_t tid;
} kinds[] = {
    {"usleep", wait_sleep, end_sleep, ITSELF, "Waiting", 0, 0}, /* the sleeper */
    {"pthread_mutex_lock", wait_mutex, end_mutex, MAIN, "Waiting", 0, 0},
    {"pthread_cond_wait", wait_cond, end_cond, MAIN, "Waiting", 0, 0},
    {"pthread_rwlock_rdlock", wait_rwlock, end_rwlock, MAIN, "Waiting", 0, 0},
    {"sem_wait", wait_sem, end_sem, MAIN, "Waiting", 0, 0},
    {"read", wait_read, end_read, ITSELF, "Syscall", 0, 0},
    {"pthread_join", wait_join, nothing, SLEEPER, "Waiting", 0, 0},
    {"-", compute, end_compute, ITSELF, "Running", 0, 0},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void *run_kind(void *arg)
{
    struct kind *kind = arg;
    kind->tid = tid();
    kind->wait();
    return NULL;
}

/* Until the kernel says that it sleeps; one that computes never does. */
static void await_wait(const struct kind *kind)
{
    while (kind->wait != compute && !is_asleep(kind->tid))
        ;
}

static int late(void)
{
    int r = pipe(pipes);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&sem, 0, 0);
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    for (int i = 0; i < KINDS; i++) {
        pthread_create(&kinds[i].thread, NULL, run_kind, &kinds[i]);
        sleeper = kinds[0].thread;
        while (!kinds[i].tid)
            ;
    }
    for (int i = 0; i < KINDS; i++)
        await_wait(&kinds[i]);
    r |= started();
    for (int i = 0; i < KINDS; i++) {
        kinds[i].end();
        if (kinds[i].wait != wait_join && i)
            pthread_join(kinds[i].thread, NULL);
    }
    pthread_join(kinds[6].thread, NULL);
    pid_t enders[] = {[MAIN] = tid(), [SLEEPER] = kinds[0].tid};
    for (int i = 0; i < KINDS; i++)
        printf("%s %d %d %s\n", kinds[i].hook, kinds[i].tid,
               kinds[i].ender == ITSELF ? kinds[i].tid : enders[kinds[i].ender], kinds[i].state);
    return r;
}

/* Load ---------------------------------------------------------------------------------------- */

static _Atomic int over;
static volatile long counter;

static void *quick(void *arg)
{
    return arg;
}

/* Contention, calls, threads that come and go, names, allocations. */
static void *toil(void *arg)
{
    char byte;
    pthread_t child;
    for (unsigned n = 0; !over; n++) {
        pthread_mutex_lock(&mutex);
        counter++;
        if (n % 8 == 0)
            sched_yield();
        pthread_mutex_unlock(&mutex);
        if (n % 16 == 0 && (write(pipes[1], "x", 1) != 1 || read(pipes[0], &byte, 1) != 1))
            abort();
        if (n % 64 == 0)
            usleep(10);
        if (n % 256 == 0 && pthread_create(&child, NULL, quick, NULL) == 0)
            pthread_join(child, NULL);
        if (n % 32 == 0)
            free(malloc(100000));
        sem_post(&sem);
    }
    return arg;
}

static void *follow(void *arg)
{
    pthread_setname_np(pthread_self(), "follower");
    while (!over)
        sem_wait(&sem);
    return arg;
}

static pthread_t toilers[4];

static int begin_load(void)
{
    int r = pipe(pipes);
    sem_init(&sem, 0, 0);
    for (int i = 0; i < 4; i++)
        r |= pthread_create(&toilers[i], NULL, i < 3 ? toil : follow, NULL);
    return r;
}

static void end_load(void)
{
    over = 1;
    sem_post(&sem);
    for (int i = 0; i < 4; i++)
        pthread_join(toilers[i], NULL);
}

static int cycles(int n)
{
    int r = begin_load();
    for (int i = 0; i < n && !r; i++) {
        r = started();
        usleep(500);
        r |= stopped();
        usleep(200);
    }
    end_load();
    return r;
}

static int load(void)
{
    char byte;
    int r = begin_load();
    printf("%d\n", tid());
    fflush(stdout);
    while (read(0, &byte, 1) == 1) {
        printf("%ld\n", counter);
        fflush(stdout);
    }
    end_load();
    return r;
}

/* The rest ------------------------------------------------------------------------------------ */

static void *child_thread(void *arg)
{
    usleep(20000);
    return arg;
}

static int fork_while_stopped(void)
{
    pthread_t thread;
    int status;
    pthread_create(&thread, NULL, child_thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&thread, NULL, child_thread, NULL);
        int r = started();
        pthread_join(thread, NULL);
        exit(r);
    }
    pthread_join(thread, NULL);
    waitpid(child, &status, 0);
    printf("%d\n", child);
    return status;
}

static void *idle_thread(void *arg)
{
    kinds[1].tid = tid();
    wait_read();
    return arg;
}

static int idle(void)
{
    pthread_t thread;
    char byte;
    int r = pipe(pipes);
    pthread_create(&thread, NULL, idle_thread, NULL);
    while (!kinds[1].tid)
        ;
    await_wait(&kinds[1]);
    printf("%d %d\n", tid(), kinds[1].tid);
    fflush(stdout);
    while (read(0, &byte, 1) == 1)
        ;
    end_read();
    pthread_join(thread, NULL);
    return r;
}

static int alone(void)
{
    char byte;
    printf("%d\n", tid());
    fflush(stdout);
    while (read(0, &byte, 1) == 1)
        usleep(1000);
    return 0;
}

static int results(void)
{
    int (*snapshot)(const char *) = gotrace_snapshot;
    printf("%s\n", strerrorname_np(stopped()));
    printf("%s\n", strerrorname_np(snapshot ? snapshot(NULL) : ENOSYS));
    printf("%d\n", started());
    printf("%s\n", strerrorname_np(started()));
    printf("%d\n", snapshot ? snapshot(NULL) : ENOSYS);
    printf("%d\n", stopped());
    printf("%s\n", strerrorname_np(stopped()));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "late") == 0)
        return late();
    if (strcmp(what, "cycles") == 0)
        return cycles(argc > 2 ? atoi(argv[2]) : 10);
    if (strcmp(what, "load") == 0)
        return load();
    if (strcmp(what, "fork") == 0)
        return fork_while_stopped();
    if (strcmp(what, "idle") == 0)
        return idle();
    if (strcmp(what, "alone") == 0)
        return alone();
    if (strcmp(what, "results") == 0)
        return results();
    return 2;
}
