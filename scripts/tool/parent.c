/* See parent.h. */
#include "parent.h"

#include "tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t program;
static volatile sig_atomic_t enough; /* the wait for descendants is over */
static volatile sig_atomic_t ended;  /* the program has ended */

/*
 * Passes a signal on to the program, if a process sent it. A terminal sends its signals to all
 * processes of its group, so the program has got them already.
 */
static void on_signal(int number, siginfo_t *info, void *context)
{
    static const int ends[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    (void)context;
    if (!ended && info->si_code <= 0)
        kill(program, number);
    for (size_t i = 0; ended && i < sizeof ends / sizeof *ends; i++)
        enough |= number == ends[i];
}

static void catch_signals(void)
{
    static const int signals[] = {SIGINT,  SIGQUIT, SIGTERM,  SIGHUP, SIGUSR1,
                                  SIGUSR2, SIGCONT, SIGWINCH, SIGALRM};
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

pid_t gt_parent_begin(void)
{
    sigset_t all, before;
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    program = fork();
    if (program < 0)
        gt_fail(GT_EXIT_OURS, "fork: %s", strerror(errno));
    if (program > 0)
        catch_signals();
    sigprocmask(SIG_SETMASK, &before, NULL);
    return program;
}

/*
 * Orphans become our children (family.c), so the family has ended when no child is left. `ended` is
 * set before the program's pid is free: on_signal must not send a signal to a later process of that
 * pid.
 */
int gt_parent_await(bool descendants)
{
    int status, result = 0;
    siginfo_t dead;
    while (!enough && (descendants || !ended)) {
        if (waitid(P_ALL, 0, &dead, WEXITED | WNOWAIT) != 0) {
            if (errno != EINTR)
                break;
            continue;
        }
        bool is_program = dead.si_pid == program;
        ended |= is_program;
        if (waitpid(dead.si_pid, &status, 0) == dead.si_pid && is_program)
            result = status;
    }
    return result;
}

bool gt_parent_aside(void (*fn)(const void *arg), const void *arg)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        fn(arg);
        exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Leaves no core file of our own, which could replace the program's. */
void gt_parent_end_as(int status)
{
    if (WIFSIGNALED(status)) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
