/*
 * A program's own use of every signal, and of SIGPROF with its timer; what it prints is the same
 * under a tracer that has taken one of them.
 */
#include "program.h"

static sem_t ready;
static volatile sig_atomic_t got[65], info_right, profiled;

static void count(int number)
{
    got[number]++;
}

static void count_info(int number, siginfo_t *info, void *context)
{
    got[number]++;
    info_right += context && info->si_signo == number && info->si_value.sival_int == 1000 + number;
}

static void on_profile(int number)
{
    (void)number;
    profiled++;
}

/* The action of each, before and after it was changed in each way. */
static void actions(void)
{
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++) {
        struct sigaction old, action = {.sa_handler = count, .sa_flags = SA_RESETHAND};
        sigaction(n, NULL, &old);
        sigaction(n, &action, NULL);
        raise(n);
        struct sigaction reset;
        sigaction(n, NULL, &reset);
        sighandler_t first = signal(n, SIG_IGN), second = signal(n, SIG_DFL);
        printf("%d: %d %d %d %d %d\n", n - SIGRTMIN, old.sa_handler == SIG_DFL, got[n],
               reset.sa_handler == SIG_DFL, first == SIG_DFL, second == SIG_IGN);
    }
}

static void values(void)
{
    int sent = 0;
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++) {
        struct sigaction action = {.sa_sigaction = count_info, .sa_flags = SA_SIGINFO};
        sigemptyset(&action.sa_mask);
        sigaction(n, &action, NULL);
        sigqueue(getpid(), n, (union sigval){.sival_int = 1000 + n});
        compute_ns(5000000);
        sent++;
    }
    printf("values: %d of %d\n", info_right, sent);
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++)
        signal(n, SIG_DFL);
}

/* Waits for all signals, like the one thread of a server that handles them. */
static void *wait_for_all(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (int i = 0, n; i < 3; i++) {
        compute_ns(100000000);
        sem_post(&ready);
        while ((n = sigwaitinfo(&all, NULL)) < 0 && errno == EINTR)
            printf("interrupted\n");
        printf("waited for %s\n", strsignal(n));
    }
    return unused;
}

static void waiting(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_all, NULL);
    for (int i = 0; i < 3; i++) {
        while (sem_wait(&ready) != 0)
            ;
        pthread_kill(thread, SIGUSR1);
    }
    pthread_join(thread, NULL);
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The program's own profiling timer: a signal each 40 ms of the process's CPU time, 0.8 s and what
 * a tracer's thread takes meanwhile. The timer counts the ticks at which the process runs, which on
 * a busy machine are a fifth more or fewer than its CPU time. A tracer's own signals, 100 or more a
 * second, would be four times as many. */
static void profile(void)
{
    double begin = cpu_ms();
    signal(SIGPROF, on_profile);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 40000}, {0, 40000}}, NULL);
    compute_ns(800000000);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    double due = (cpu_ms() - begin) / 40;
    signal(SIGPROF, SIG_DFL);
    printf("profiled: %s\n",
           profiled >= 0.5 * due && profiled <= 2 * due ? "as often as asked" : "wrong");
}

/* How a child ends that gets a signal without a handler, after it has used the CPU. */
static void deaths(void)
{
    for (int n = SIGRTMIN; n <= SIGRTMAX; n++) {
        int status;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            compute_ns(2000000);
            raise(n);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        printf("death by %d: %d\n", n - SIGRTMIN, WIFSIGNALED(status) && WTERMSIG(status) == n);
    }
}

int main(int argc, char **argv)
{
    actions();
    values();
    waiting();
    profile();
    deaths();
    compute_ns(100000000);
    fflush(stdout);
    if (argc == 1)
        execl(argv[0], argv[0], "again", NULL);
    return 0;
}
