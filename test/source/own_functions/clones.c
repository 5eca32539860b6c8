/*
 * A library whose handler of pthread_atfork(3) makes a process by clone(2), and waits for it. Its
 * constructor runs before ours, so that libc calls its handler behind ours.
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

static void clone_and_wait(void)
{
    static _Alignas(16) char stack[64 << 10];
    int pid = clone(end, stack + sizeof stack, SIGCHLD, NULL);
    waitpid(pid, NULL, 0);
}

__attribute__((constructor)) static void watch(void)
{
    pthread_atfork(clone_and_wait, NULL, NULL);
}
