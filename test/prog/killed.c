/*
 * Threads that keep a journal of their own, in a file that is mapped: how many logs each has
 * written to its trace, and how often it has yielded, which is in traces of every format; a part of
 * that is in the file. Then the process ends as argv[2] says, in a way that no handler sees.
 */
#include "truth.h"
#include "../../preload/gotrace.h"

enum { THREADS = 8, LOGS_FIRST = 300, LOGS_FAST = 2000, LOGS_OF_ONE = 64, HOLDS = 16, FORKS = 9 };

static struct {
    _Alignas(64) volatile uint64_t written;
    volatile uint64_t yields;
} * journal;

static uint64_t fast = LOGS_FAST; /* from then on with pauses */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long work;
static bool is_silent; /* has no texts for its trace */
static volatile bool is_over;
static _Atomic int waiter; /* wait_for_ever's thread, once it is about to wait */

static void write_log(uintptr_t number, uint64_t n)
{
    char text[64];
    snprintf(text, sizeof text, "%u:%llu", (unsigned)number, (unsigned long long)n);
    if (!is_silent)
        gotrace_log(0, "journal", text);
    journal[number].written = n;
}

/* After it, or while it is held: then others wait for it, and some are woken needlessly. */
static void yield_with_lock(bool held)
{
    pthread_mutex_lock(&mutex);
    work++;
    if (held)
        sched_yield();
    pthread_mutex_unlock(&mutex);
    if (!held)
        sched_yield();
}

static void write_up_to(uintptr_t number, uint64_t last)
{
    char name[16];
    snprintf(name, sizeof name, "writer-%u", (unsigned)number);
    if (!is_silent)
        pthread_setname_np(pthread_self(), name);
    if (!is_silent && number == 0)
        pthread_setname_np(pthread_self(), ""); /* it has lost its name */
    for (uint64_t n = journal[number].written + 1; n <= last && !is_over; n++) {
        write_log(number, n);
        if (n % 4 == 0) {
            is_silent ? (void)sched_yield() : yield_with_lock(n % (4 * HOLDS) == 0);
            journal[number].yields++;
        }
        if (n > fast)
            usleep(100);
    }
}

static void *write_logs(void *number)
{
    write_up_to((uintptr_t)number, UINT64_MAX);
    return NULL;
}

static void *write_some(void *number)
{
    write_up_to((uintptr_t)number, journal[(uintptr_t)number].written + LOGS_OF_ONE);
    return NULL;
}

/* Many threads do this, one after the other: some begin late. */
static void *have_some_written(void *number)
{
    pthread_t thread;
    while (!is_over && pthread_create(&thread, NULL, write_some, number) == 0)
        pthread_join(thread, NULL);
    return NULL;
}

static void *wait_for_ever(void *unused)
{
    pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mine);
    waiter = tid();
    pthread_cond_wait(&never, &mine);
    return unused;
}

/* How it ends -------------------------------------------------------------------------------- */

static int overflow(int depth)
{
    volatile char room[4096];
    memset((char *)room, depth, sizeof room);
    return depth < INT32_MAX ? overflow(depth + 1) + room[depth % (int)sizeof room] : 0;
}

static void die(int signal)
{
    (void)signal;
    kill(getpid(), SIGILL);
}

/* The kernel, without anybody in between. */
static long call_kernel(long number, long argument)
{
#if defined __x86_64__
    long result = number;
    __asm__ volatile("xor %%r10d, %%r10d; xor %%r8d, %%r8d; syscall"
                     : "+a"(result)
                     : "D"(argument), "S"(0L), "d"(0L)
                     : "rcx", "r8", "r10", "r11", "memory");
    return result;
#else
    register long x0 __asm__("x0") = argument, x8 __asm__("x8") = number;
    register long x1 __asm__("x1") = 0, x2 __asm__("x2") = 0, x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

/* Known to libc, known to our hook only, and unknown to both. */
static long fork_somehow(uint64_t how)
{
    switch (how % 3) {
    case 0: return fork();
    case 1: return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    default: return call_kernel(SYS_clone, SIGCHLD);
    }
}

/* Of children's memory none may be ours. */
static void fork_children(void)
{
    for (uint64_t i = 0; i < FORKS; i++) {
        long pid = fork_somehow(i);
        if (pid == 0) {
            for (uint64_t n = 0; n < LOGS_FIRST; n++)
                gotrace_log(0, "journal", "of a child");
            call_kernel(SYS_exit_group, 0);
        }
        waitpid((pid_t)pid, NULL, 0);
    }
}

/* That of a filter, which ends the process. */
static void break_a_rule(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, FILTER_OF(SYS_getppid, SECCOMP_RET_KILL_PROCESS));
    getppid();
}

/* More than there is. */
static void use_memory(void)
{
    enum { MOST = 4096, SIZE = 1 << 20 };
    for (int i = 0; i < MOST; i++) {
        char *room = malloc(SIZE);
        if (room)
            memset(room, i | 1, SIZE);
    }
}

/* All is in the journal before the end begins. */
static void end_soon(const char *ms, const pthread_t *writers)
{
    usleep((useconds_t)atoi(ms) * 1000);
    is_over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(writers[i], NULL);
    exit(0);
}

static void end(const char *how, char **command, const pthread_t *writers)
{
    if (strcmp(how, "soon") == 0)
        end_soon(command[0], writers);
    if (strcmp(how, "overflow") == 0)
        overflow(0);
    if (strcmp(how, "handler") == 0) {
        signal(SIGSEGV, die);
        raise(SIGSEGV);
    }
    if (strcmp(how, "instruction") == 0)
        call_kernel(SYS_exit_group, 7);
    if (strcmp(how, "exec") == 0)
        execv(command[0], command);
    if (strcmp(how, "seccomp") == 0)
        break_a_rule();
    if (strcmp(how, "memory") == 0)
        use_memory();
    if (strcmp(how, "forks") == 0) {
        fork_children();
        raise(SIGKILL);
    }
    if (strcmp(how, "exit") == 0)
        exit(0);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    int fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    pthread_t thread, writers[THREADS];
    if (fd < 0 || ftruncate(fd, THREADS * sizeof *journal) != 0)
        return 2;
    bool busy = strcmp(argv[2], "busy") == 0 || strcmp(argv[2], "soon") == 0;
    if (busy)
        fast = UINT64_MAX;
    is_silent = strcmp(argv[2], "silent") == 0;
    journal = mmap(NULL, THREADS * sizeof *journal, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&writers[i], NULL, busy && i == 0 ? have_some_written : write_logs,
                       (void *)i);
    for (int i = 0; i < THREADS; i++) {
        while (journal[i].written < LOGS_FIRST)
            usleep(1000);
    }
    until_asleep(&waiter);
    while (gotrace_snapshot(NULL) == ETIMEDOUT)
        ;
    puts("ready");
    fflush(stdout);
    end(argv[2], argv + 3, writers);
}
