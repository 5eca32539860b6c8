/*
 * Confines itself so that one system call, argv[2], kills it; argv[1] names when. Threads compete
 * after that, and some of them run already ("all"). 77: the kernel refuses the filter.
 * "run": argv[3] is what it then executes. "hang": its last thread waits for itself.
 * "unreadable": what the kernel refuses. "answered": what a filter answers in the kernel's place.
 */
#include "../prog/program.h"
#include <linux/futex.h>

enum { THREADS = 3, ROUNDS = 3, SPINS = 100000, PAGE = 4096 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *compete(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        for (volatile int k = 0; k < SPINS; k++)
            ;
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static pthread_barrier_t barrier;

/* From before the filter until after it, and long enough for CPU samples. */
static void *stay(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (volatile int k = 0; k < 100 * SPINS; k++)
        ;
    return compete(arg);
}

/* Whether libc's threads wait is left to chance. */
static void call_futex(void)
{
    static uint32_t word;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
}

static void work(void)
{
    call_futex();
    RUN_THREADS(THREADS, compete, NULL);
}

static void confine(unsigned number, unsigned flags)
{
    struct sock_fprog *filter = FILTER_OF(number, SECCOMP_RET_KILL_PROCESS);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long r = flags ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, filter)
                   : syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter);
    if (r != 0)
        _exit(77);
}

static void confine_all(unsigned number)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, stay, NULL);
    pthread_barrier_wait(&barrier);
    confine(number, SECCOMP_FILTER_FLAG_TSYNC);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

static void in_child(void (*begin)(unsigned), unsigned number)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        begin(number);
        work();
        exit(0);
    }
    waitpid(child, &status, 0);
    if (status)
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void at_once(unsigned number)
{
    confine(number, 0);
}

static void exec_again(unsigned number)
{
    confine(number, 0);
    execl("/proc/self/exe", "confines", "again", NULL);
    _exit(1);
}

static void before(unsigned number)
{
    (void)number;
}

static void unreadable(void)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* or else a user is refused for that */
    void *bad[] = {pages + PAGE, pages + PAGE - 8, (void *)-1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sock_fprog program = {4, bad[i]};
        long r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, bad[i]);
        printf("%ld %s\n", r, strerror(errno));
        r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
        printf("%ld %s\n", r, strerror(errno));
    }
}

/* The filter lets a call succeed whose address nobody reads. */
static void answered(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, FILTER_OF(SYS_bind, SECCOMP_RET_ERRNO)) != 0)
        _exit(77);
    printf("%d ", bind(-1, NULL, 0));
    printf("%d\n", bind(-1, (struct sockaddr *)PAGE, sizeof(struct sockaddr_storage)));
}

int main(int argc, char **argv)
{
    const char *when = argc > 1 ? argv[1] : "";
    unsigned number = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    if (strcmp(when, "unreadable") == 0) {
        unreadable();
    } else if (strcmp(when, "answered") == 0) {
        answered();
    } else if (strcmp(when, "again") == 0) {
        puts("again"); /* as most programs it has a use for malloc */
    } else if (strcmp(when, "child") == 0) {
        in_child(at_once, number);
    } else if (strcmp(when, "run") == 0) {
        confine(number, 0);
        execv(argv[3], argv + 3);
    } else if (strcmp(when, "hang") == 0) {
        work();
        confine(number, SECCOMP_FILTER_FLAG_TSYNC);
        pthread_mutex_lock(&mutex);
        pthread_mutex_lock(&mutex);
    } else if (strcmp(when, "exec") == 0) {
        in_child(exec_again, number);
    } else {
        if (strcmp(when, "before") != 0)
            work();
        if (strcmp(when, "all") == 0)
            confine_all(number);
        else
            confine(number, 0);
        if (strcmp(when, "parent") == 0)
            in_child(before, number);
        work();
    }
    return 0;
}
