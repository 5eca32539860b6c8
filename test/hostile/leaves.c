/*
 * A signal handler that jumps out of whatever it has interrupted, as timeouts do: `leaves <end>`.
 * The call is one that may be left so (signal-safety(7)).
 */
#include "../prog/program.h"
#include <setjmp.h>

enum { JUMPS = 3000, THREADS = 2, EVERY_NS = 50000 };

static __thread sigjmp_buf out;
static __thread volatile int left;
static sem_t done;

static void leave(int number)
{
    siglongjmp(out, number);
}

/* Signals at any instruction, however many CPUs there are. */
static void begin_signals(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    struct itimerspec every = {{0, EVERY_NS}, {0, EVERY_NS}};
    timer_t timer;
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &every, NULL) != 0)
        abort();
}

static void *run(void *arg)
{
    int zero = open("/dev/zero", O_RDONLY);
    sigset_t set;
    char c;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (sigsetjmp(out, 0) != 0)
        left++;
    else
        begin_signals();
    while (left < JUMPS) {
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        for (int i = 0; i < 100; i++)
            if (read(zero, &c, 1) != 1)
                abort();
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sem_post(&done);
    pause();
    return arg;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = leave};
    char *program[] = {"true", NULL};
    pthread_t thread[THREADS];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sem_init(&done, 0, 0);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run, NULL);
    for (int i = 0; i < THREADS; i++)
        sem_wait(&done);
    puts("done");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "exec") == 0)
        execvp(program[0], program);
    return 0;
}
