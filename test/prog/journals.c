/*
 * Processes that each keep a journal in argv[1]/PID, which is mapped: how many logs each of their
 * threads has written to its trace. argv[2] says what the first one does meanwhile: "alone"
 * nothing; with any other word it makes children of that kind all the time, three at most at once,
 * which do the same for a few milliseconds and then end in one of several ways. The first one is
 * killed from outside. A process that comes by exec goes on with the journal that it finds.
 */
#include "program.h"
#include "../../preload/gotrace.h"

#include <spawn.h>

enum { THREADS = 3, AT_ONCE = 3, PAUSE_EVERY = 16, LIFE_MS = 30, NAME = 4096 };

static struct {
    _Alignas(64) volatile uint64_t written;
} * journal;

extern char **environ;
static char **arguments;
static atomic_bool is_over;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void open_journal(void)
{
    char name[NAME];
    snprintf(name, sizeof name, "%s/%d", arguments[1], (int)getpid());
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, THREADS * sizeof *journal) != 0)
        _exit(2);
    journal = mmap(NULL, THREADS * sizeof *journal, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

/* A message is "PID:THREAD:NUMBER". What the journal has was recorded before. */
static void *write_logs(void *thread)
{
    char text[64];
    uintptr_t i = (uintptr_t)thread;
    for (uint64_t n = journal[i].written + 1; !is_over; n++) {
        snprintf(text, sizeof text, "%d:%d:%llu", (int)getpid(), (int)i, (unsigned long long)n);
        gotrace_log(0, "journal", text);
        journal[i].written = n;
        pthread_mutex_lock(&mutex);
        if (n % PAUSE_EVERY == 0)
            usleep(20);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void begin(pthread_t *threads)
{
    is_over = false;
    pthread_mutex_init(&mutex, NULL); /* one of the parent's threads may have held it */
    open_journal();
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, write_logs, (void *)i);
}

/* Nothing is written after this: a later record would be no loss. */
static void stop(const pthread_t *threads)
{
    is_over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static unsigned by_chance(unsigned n)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned)(now.tv_nsec / 1000 + getpid()) % n;
}

/* It is the same program with "child", or not the program of the user. */
static char **as_child(void)
{
    static char word[] = "child";
    static char *argv[] = {NULL, NULL, word, NULL};
    argv[0] = arguments[0];
    argv[1] = arguments[1];
    return argv;
}

static void end(const pthread_t *threads, bool may_exec)
{
    unsigned how = by_chance(may_exec ? 5 : 4);
    if (how == 0)
        raise(SIGKILL);
    stop(threads);
    switch (how) {
    case 1: abort();
    case 2: exit(0);
    case 3: _exit(0);
    default: execv("/proc/self/exe", as_child());
    }
}

static void live_and_end(bool may_exec)
{
    pthread_t threads[THREADS];
    begin(threads);
    usleep(by_chance(LIFE_MS) * 1000);
    end(threads, may_exec);
}

static void make_child(const char *kind)
{
    pid_t pid = -1;
    if (strcmp(kind, "spawn") == 0)
        posix_spawn(&pid, "/proc/self/exe", NULL, NULL, as_child(), environ);
    else if (strcmp(kind, "vfork") == 0 && (pid = vfork()) == 0) {
        execv("/proc/self/exe", as_child());
        _exit(2);
    } else if (strcmp(kind, "fork") == 0 && (pid = fork()) == 0)
        live_and_end(true);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc != 3)
        return 2;
    arguments = argv;
    if (strcmp(argv[2], "child") == 0)
        live_and_end(false);
    begin(threads);
    puts("ready");
    fflush(stdout);
    if (strcmp(argv[2], "alone") == 0)
        pause();
    for (int n = 0;; n++) {
        make_child(argv[2]);
        if (n >= AT_ONCE)
            wait(NULL);
    }
}
