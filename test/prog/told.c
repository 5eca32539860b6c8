/*
 * told JOURNAL WAY: a thread sleeps 5 ms at a time, and counts in the first word of the file
 * JOURNAL how often it has. WAY says what the program does about SIGTERM: nothing, ignores,
 * handles, waits (sigwait), asks (prints what its action is, then nothing). Runs until a signal
 * ends it.
 */
#include "program.h"

static _Atomic unsigned *journal;
static volatile sig_atomic_t handled;

static void *sleeps(void *arg)
{
    while (!handled) {
        usleep(5000);
        atomic_fetch_add(journal, 1);
    }
    return arg;
}

static void handle(int number)
{
    handled = number;
}

static int wait_for(int number)
{
    sigset_t set;
    int got = 0;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigwait(&set, &got);
    printf("got %d\n", got);
    return 3;
}

int main(int argc, char **argv)
{
    int fd = open(argc > 2 ? argv[1] : "", O_RDWR | O_CREAT, 0600);
    const char *way = argv[2];
    struct sigaction now;
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return 2;
    journal = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (strcmp(way, "ignores") == 0)
        signal(SIGTERM, SIG_IGN);
    if (strcmp(way, "handles") == 0)
        sigaction(SIGTERM, &(struct sigaction){.sa_handler = handle}, NULL);
    if (strcmp(way, "waits") == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, sleeps, NULL);
    if (strcmp(way, "asks") == 0) {
        sigaction(SIGTERM, NULL, &now);
        printf("default %d, again %d\n", now.sa_handler == SIG_DFL,
               signal(SIGTERM, SIG_DFL) == SIG_DFL);
        fflush(stdout);
    }
    if (strcmp(way, "waits") == 0)
        return wait_for(SIGTERM);
    pthread_join(thread, NULL);
    printf("handled %d\n", handled);
    return 4;
}
