/*
 * A process that only waits for signals, from its beginning to its end, while its children work:
 * each computes and sleeps in turn. The child that has done its rounds tells the process to end,
 * which then ends the other child.
 */
#include "../../prog/program.h"

enum { CHILDREN = 2, ROUNDS = 100 };
static volatile sig_atomic_t asked;

static void note(int signo)
{
    (void)signo;
    asked = 1;
}

static void compute(void)
{
    for (volatile int i = 0; i < 300000; i++)
        ;
}

static void work(void)
{
    for (int i = 0; i < ROUNDS && !asked; i++) {
        compute();
        usleep(2000);
    }
}

int main(int argc, char **argv)
{
    bool events = argc > 1 && strcmp(argv[1], "events") == 0;
    pid_t child[CHILDREN];
    sigset_t term, none;
    sigemptyset(&none);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = note}, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        if ((child[i] = fork()) != 0)
            continue;
        sigprocmask(SIG_UNBLOCK, &term, NULL);
        work();
        kill(getppid(), SIGTERM);
        return 0;
    }
    while (!asked) {
        if (events)
            ppoll(NULL, 0, NULL, &none);
        else
            sigsuspend(&none);
    }
    for (int i = 0; i < CHILDREN; i++)
        kill(child[i], SIGTERM);
    while (wait(NULL) > 0)
        ;
    return 0;
}
