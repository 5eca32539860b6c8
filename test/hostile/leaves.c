/*
 * A signal handler that jumps out of whatever it has interrupted, as timeouts do: `leaves <end>`.
 * The call is one that may be left so (signal-safety(7)).
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JUMPS = 3000, THREADS = 2 };

static __thread sigjmp_buf out;
static __thread volatile int left;
static atomic_int ready, done;

static void leave(int number)
{
    siglongjmp(out, number);
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
        ready++;
    while (left < JUMPS) {
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        for (int i = 0; i < 100; i++)
            if (read(zero, &c, 1) != 1)
                abort();
    }
    done++;
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
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run, NULL);
    while (ready < THREADS)
        ;
    for (int i = 0; done < THREADS; i++)
        pthread_kill(thread[i % THREADS], SIGUSR1);
    puts("done");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "exec") == 0)
        execvp(program[0], program);
    return 0;
}
