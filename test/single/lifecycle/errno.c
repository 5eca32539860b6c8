/*
 * Prints errno wherever our code has run before: in the constructor, main, threads, and around
 * forks.
 */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"

static void prepare(void)
{
    printf("before fork %d\n", errno);
}

static void parent(void)
{
    printf("after fork %d\n", errno);
}

static void child(void)
{
    printf("in the child's handler %d\n", errno);
}

static void fork_once(void)
{
    fflush(stdout);
    errno = 4711;
    pid_t pid = fork();
    int found = errno;
    if (pid)
        waitpid(pid, NULL, 0);
    printf("%s %d\n", pid ? "parent" : "child", found);
    fflush(stdout);
    if (pid == 0)
        _exit(0);
}

static void *begin(void *arg)
{
    printf("thread %d\n", errno);
    return arg;
}

__attribute__((constructor)) static void construct(void)
{
    printf("constructor %d\n", errno);
}

int main(void)
{
    printf("main %d\n", errno);
    pthread_atfork(prepare, parent, child);
    fork_once();
    RUN_THREADS(1, begin, NULL);
    gotrace_snapshot(NULL); /* our thread has a file now, which the child's has not */
    fork_once();
    return 0;
}
