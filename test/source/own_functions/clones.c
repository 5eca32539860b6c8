/*
 * A library whose handler of pthread_atfork(3) makes a process by clone(2), or with -DBY_FORK by
 * fork(2), and waits for it. Its constructor runs before ours, so that libc calls its handler
 * behind ours.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static int end(void *unused)
{
    (void)unused;
    _exit(0);
}

static int make_process(void)
{
#ifdef BY_FORK
    int pid = fork();
    return pid ? pid : end(NULL);
#else
    static _Alignas(16) char stack[64 << 10];
    return clone(end, stack + sizeof stack, SIGCHLD, NULL);
#endif
}

static void make_process_and_wait(void)
{
    static int inside; /* the handler is called for its own fork, too */
    if (!inside++)
        waitpid(make_process(), NULL, 0);
    inside--;
}

__attribute__((constructor)) static void watch(void)
{
    pthread_atfork(make_process_and_wait, NULL, NULL);
}
