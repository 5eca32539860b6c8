/*
 * A process that only waits for signals, from its beginning to its end, while its children work:
 * each computes and sleeps in turn. The child that has done its rounds tells the process to end,
 * which then ends the other child. "events": the process waits in ppoll. "stopped": a signal ends
 * the process meanwhile. "batch": the process waits for one that is not recorded, while a thread of
 * its own only waits.
 */
#include "../../prog/program.h"

enum { CHILDREN = 2, ROUNDS = 100, ENDLESS = 1000000 };
static volatile sig_atomic_t asked;

static void note(int signo)
{
    (void)signo;
    asked = 1;
}

static void compute(void)
{
    for (volatile int i = 0; i < 3000000; i++)
        ;
}

static void work(int rounds)
{
    for (int i = 0; i < rounds && !asked; i++) {
        compute();
        usleep(2000);
    }
}

static void *only_wait(void *arg)
{
    sem_t never;
    sem_init(&never, 0, 0);
    sem_wait(&never);
    return arg;
}

/* Waits for a result of a program that is not recorded. */
static int run_batch(void)
{
    pthread_t t;
    int ends[2];
    char c;
    pthread_create(&t, NULL, only_wait, NULL);
    if (pipe(ends))
        return 1;
    if (!fork()) {
        unsetenv("LD_PRELOAD");
        dup2(ends[1], 1);
        return execlp("sh", "sh", "-c", "sleep 0.5; echo", NULL);
    }
    struct pollfd result = {ends[0], POLLIN, 0};
    return poll(&result, 1, -1) != 1 || read(ends[0], &c, 1) != 1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "batch") == 0)
        return run_batch();
    bool stopped = argc > 1 && strcmp(argv[1], "stopped") == 0;
    if (stopped)
        alarm(1);
    bool events = argc > 1 && strcmp(argv[1], "events") == 0;
    int never[2];
    if (pipe(never))
        return 1;
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
        if (stopped)
            prctl(PR_SET_PDEATHSIG, SIGTERM);
        work(stopped ? ENDLESS : ROUNDS);
        kill(getppid(), SIGTERM);
        return 0;
    }
    while (!asked) {
        if (events)
            ppoll(&(struct pollfd){never[0], POLLIN, 0}, 1, NULL, &none);
        else
            sigsuspend(&none);
    }
    for (int i = 0; i < CHILDREN; i++)
        kill(child[i], SIGTERM);
    while (wait(NULL) > 0)
        ;
    return 0;
}
