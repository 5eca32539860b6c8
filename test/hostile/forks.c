/*
 * Processes that make processes. argv[1] names the way; what they print is the same whatever the
 * order. Children that make threads use all that a forked child must have in order again.
 */
#include "../prog/program.h"
#include "../prog/libc.h"

#include <spawn.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stop;
static long counter;

static void *work(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

/* Threads that wait for each other; returns 0 when their sum is right. */
static int threads(void)
{
    counter = 0;
    RUN_THREADS(4, work, NULL);
    return counter == 8000 ? 0 : 9;
}

static void *nothing(void *arg)
{
    return arg;
}

static _Atomic unsigned children;

/*
 * Locks, new stacks, names: whatever a fork could interrupt in the middle. Not so many threads that
 * numbers of processes begin anew: two children of one number leave one file.
 */
static void *churn(void *arg)
{
    enum { THREADS_MAX = 100 }; /* for each child */
    char name[16];
    for (unsigned i = 0; !stop; i++) {
        pthread_t thread;
        while (!stop && i >= THREADS_MAX * (children + 1))
            sched_yield();
        snprintf(name, sizeof name, "churn %u", i);
        pthread_setname_np(pthread_self(), name);
        if (pthread_create(&thread, NULL, nothing, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return arg;
}

static int reap(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int forked(pid_t (*make)(void))
{
    fflush(stdout);
    pid_t pid = make();
    if (pid == 0)
        _exit(threads());
    return reap(pid);
}

static pid_t by_syscall(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void under_fire(void)
{
    pthread_t thread[2];
    int bad = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, churn, NULL);
    for (; children < 100; children++)
        bad += forked(fork) != 0;
    stop = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    printf("%d of 100 children failed\n", bad);
}

static void *fork_here(void *arg)
{
    *(int *)arg = forked(fork);
    return NULL;
}

static void from_thread(void)
{
    int status = -1;
    RUN_THREADS(1, fork_here, &status);
    printf("child of a thread: %d\n", status);
}

static void in_vfork(void)
{
    volatile int status = -1;
    for (volatile int i = 0; i < 50; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
            _exit(1);
        }
        status = reap(pid);
    }
    pid_t pid = vfork();
    if (pid == 0)
        _exit(6);
    printf("vfork: %d %d\n", status, reap(pid));
}

static void by_spawn(void)
{
    extern char **environ;
    pid_t pid;
    char *const args[] = {"sh", "-c", "exit 5", NULL};
    int r = posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ);
    printf("posix_spawn: %d %d\n", r, reap(pid));
    r = posix_spawn(&pid, "/nonexistent", NULL, NULL, args, environ);
    printf("posix_spawn: %s\n", strerror(r));
    printf("system: %d\n", WEXITSTATUS(system("exit 7")));
    char line[64] = "";
    FILE *pipe = popen("echo from a pipe", "r");
    printf("popen: %s", fgets(line, sizeof line, pipe) ? line : "nothing\n");
    printf("pclose: %d\n", pclose(pipe));
}

/* What a descendant says that nobody can wait for; until it has ended, and its trace is there. */
static void hear_out(const int answer[2])
{
    char text[32] = "";
    size_t n = 0;
    close(answer[1]);
    for (ssize_t more; (more = read(answer[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)more;
    puts(text);
}

/* Twice over, as daemons do; the grandchild answers through a pipe. */
static void twice(void)
{
    int answer[2];
    if (pipe(answer) != 0)
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        if (fork() == 0) {
            const char *word = threads() == 0 ? "grandchild" : "failed";
            if (write(answer[1], word, strlen(word) + 1) < 0)
                abort();
        }
        _exit(0);
    }
    reap(pid);
    hear_out(answer);
}

static void as_daemon(void)
{
    int answer[2];
    if (pipe(answer) != 0)
        abort();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (daemon(0, 0) != 0)
            abort();
        const char *word = threads() == 0 ? "daemon" : "failed";
        if (write(answer[1], word, strlen(word) + 1) < 0)
            abort();
        _exit(0);
    }
    reap(pid);
    hear_out(answer);
}

static void *exec_here(void *arg)
{
    execl("/bin/sh", "sh", "-c", "echo exec from a thread; exit 3", (char *)NULL);
    return arg;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    threads();
    if (strcmp(way, "fork") == 0)
        printf("fork: %d\n", forked(fork));
    else if (strcmp(way, "_Fork") == 0)
        printf("_Fork: %d\n", forked(_Fork));
    else if (strcmp(way, "clone") == 0)
        printf("clone: %d\n", forked(by_syscall));
    else if (strcmp(way, "under-fire") == 0)
        under_fire();
    else if (strcmp(way, "thread") == 0)
        from_thread();
    else if (strcmp(way, "vfork") == 0)
        in_vfork();
    else if (strcmp(way, "spawn") == 0)
        by_spawn();
    else if (strcmp(way, "twice") == 0)
        twice();
    else if (strcmp(way, "daemon") == 0)
        as_daemon();
    else if (strcmp(way, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "echo exec from main; exit 4", (char *)NULL);
    else if (strcmp(way, "exec-thread") == 0) {
        RUN_THREADS(1, exec_here, NULL);
    } else {
        return 2;
    }
    return 0;
}
