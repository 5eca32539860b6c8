/*
 * Gives a tracer reason for all that it ever does, from MARK (see spy.c) on, and makes few system
 * calls of its own: what comes on top is the tracer's.
 *
 *   threads DIR   of which some wait already when the mark is made
 *   first DIR     threads are made after the mark; then a child, and exec, which see no mark before
 *   alone DIR     no threads at all
 *   crash DIR     as threads, and then a signal ends it
 *
 * Files of the tracer's go to DIR.
 */
#include "program.h"
#include "mark.h"

#include "../../preload/gotrace.h"

#include <linux/futex.h>

enum { WAITERS = 3, ROUNDS = 20, EVENTS = 20000, BLOCKS = 2000, LARGE = 1 << 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static int sockets[2];
static bool over;

static void pause_for(long ns)
{
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

static pthread_barrier_t barrier;

/* Ours, and then the tracer's, which answers: there is no making a file of that name. */
static void await_threads(const char *dir)
{
    pthread_barrier_wait(&barrier);
    gotrace_snapshot(dir);
}

static void *waiter(void *arg)
{
    char byte;
    if (arg)
        pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    while (!over)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_unlock(&lock);
    sem_wait(&sem);
    if (recv(sockets[0], &byte, 1, 0) != 1)
        _exit(9);
    return arg;
}

static void start(pthread_t *threads, bool awaited)
{
    over = false;
    pthread_barrier_init(&barrier, NULL, WAITERS + 1);
    sem_init(&sem, 0, 0);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    pthread_rwlock_wrlock(&lock);
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, waiter, awaited ? &barrier : NULL);
}

static void finish(const pthread_t *threads)
{
    pause_for(5000000);
    pthread_mutex_lock(&mutex);
    over = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    pause_for(5000000);
    pthread_rwlock_unlock(&lock);
    pause_for(5000000);
    for (int i = 0; i < WAITERS; i++)
        sem_post(&sem);
    pause_for(5000000);
    if (send(sockets[1], "abc", WAITERS, 0) != WAITERS)
        _exit(9);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
}

static void allocate(void)
{
    static void *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        block[i] = malloc((size_t)i * 16);
    for (int i = 0; i < BLOCKS; i++)
        free(block[i]);
    free(realloc(malloc(LARGE), 4 * LARGE));
}

/* More than a buffer holds, and tables that grow. */
static void annotate(void)
{
    char text[32];
    gotrace_task task = gotrace_task_begin(0, "task");
    gotrace_region region = gotrace_region_begin(task, "region");
    for (int i = 0; i < EVENTS; i++) {
        snprintf(text, sizeof text, "%d", i % 1000);
        gotrace_log(task, "number", text);
    }
    gotrace_region_end(region);
    gotrace_task_end(task);
}

/* A handler on a signal stack of its own that waits, too. */
static void handler(int number)
{
    (void)number;
    poll(NULL, 0, 1);
}

static void signals(void)
{
    static char room[64 << 10];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    for (int i = 0; i < 2 && getenv("GOTRACE_SIGNAL"); i++) {
        raise(SIGUSR2);
        poll(NULL, 0, 20);
    }
}

static void compute(void)
{
    for (volatile int i = 0; i < 100000000; i++)
        ;
}

static void futexes(void)
{
    static uint32_t word;
    struct timespec time = {0, 1000000};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
    sched_yield();
}

static void control(const char *dir)
{
    char path[4096];
    gotrace_stop();
    pause_for(1000000);
    gotrace_start();
    pause_for(1000000);
    snprintf(path, sizeof path, "%s/snapshot", dir);
    gotrace_snapshot(path);
    gotrace_snapshot(NULL);
}

static void all(const char *dir)
{
    allocate();
    futexes();
    for (int i = 0; i < ROUNDS; i++)
        pause_for(1000000);
    annotate();
    pthread_setname_np(pthread_self(), "needs");
    signals();
    compute();
    control(dir);
    dlclose(dlopen("libm.so.6", RTLD_NOW));
}

static void in_child(const char *dir)
{
    pthread_t threads[WAITERS];
    int status;
    pid_t child = fork();
    if (child == 0) {
        start(threads, false);
        allocate();
        finish(threads);
        exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        _exit(9);
    execl("/proc/self/exe", "needs", "alone", dir, NULL);
}

/*
 * From glibc 2.43 on what malloc keeps for a thread is where the heap ended at its first free. The
 * tracer has one before main; above BLOCKS, it would be why the heap does not shrink after them.
 */
static void free_one(void)
{
    void *volatile block = malloc(1);
    free(block);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "", *dir = argc > 2 ? argv[2] : "";
    bool before = strcmp(what, "threads") == 0 || strcmp(what, "crash") == 0;
    bool alone = strcmp(what, "alone") == 0;
    pthread_t threads[WAITERS];
    free_one();
    if (before) {
        start(threads, true);
        await_threads(dir);
    }
    syscall(MARK);
    if (!before && !alone)
        start(threads, false);
    all(dir);
    if (!alone)
        finish(threads);
    /* With one thread: once a second the tracer's own asks whether even that is gone. */
    if (strcmp(what, "first") == 0 && getenv("GOTRACE_RING"))
        poll(NULL, 0, 1500);
    if (strcmp(what, "first") == 0)
        in_child(dir);
    if (strcmp(what, "crash") == 0)
        raise(SIGSEGV);
    return 0;
}
