/* Waits four times for a signal, in a poll without descriptors; a process without a trace sends it.
 */
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing(int signal)
{
    (void)signal;
}

int main(void)
{
    char command[64];
    char *args[] = {"sh", "-c", command, NULL}, *none[] = {NULL};
    sigset_t set, before;
    pid_t child;
    snprintf(command, sizeof command, "for i in 1 2 3 4; do sleep 0.1; kill -USR1 %d; done",
             getpid());
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &before);
    signal(SIGUSR1, nothing);
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, args, none) != 0)
        return 1;
    for (int i = 0; i < 4; i++)
        ppoll(NULL, 0, NULL, &before);
    return waitpid(child, NULL, 0) != child;
}
