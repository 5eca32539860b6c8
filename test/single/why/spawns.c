/*
 * Starts three processes, one after the other, each of which works for 50 ms: spawns HOW.
 *
 *   signal  a signal says that the process has ended, while main polls
 *   output  main reads what the process writes, until that has ended
 */
#include <spawn.h>

#include "../../prog/program.h"

enum { TIMES = 3, WORK_US = 50000 };

static __attribute__((noinline)) void work(void)
{
    usleep(WORK_US);
    __asm__ volatile("");
}

static pid_t start(const char *self, int output)
{
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1);
    char *argv[] = {(char *)self, "work", NULL};
    if (posix_spawn(&child, self, &actions, NULL, argv, environ))
        _exit(1);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static void ended(int signal)
{
    (void)signal;
}

static void until_signal(const char *self)
{
    sigset_t none, block;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    sigprocmask(SIG_BLOCK, &block, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = ended}, NULL);
    pid_t child = start(self, -1);
    ppoll(NULL, 0, NULL, &none);
    waitpid(child, NULL, 0);
}

static void until_output_ends(const char *self)
{
    int end[2];
    char byte;
    if (pipe2(end, O_CLOEXEC))
        _exit(1);
    pid_t child = start(self, end[1]);
    close(end[1]);
    while (read(end[0], &byte, 1) == 1)
        ;
    close(end[0]);
    waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!strcmp(argv[1], "work"))
        work();
    for (int i = 0; i < TIMES && strcmp(argv[1], "work"); i++)
        (strcmp(argv[1], "signal") ? until_output_ends : until_signal)(argv[0]);
    return 0;
}
