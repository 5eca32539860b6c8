/*
 * Handles 1,000 signals in epoll_pwait. Prints how often that was interrupted, and how often it
 * returned for another reason.
 */
#include "../../prog/program.h"
static volatile sig_atomic_t handled;
static void handle(int sig)
{
    (void)sig;
    handled++;
}
int main(void)
{
    int interrupted = 0, other = 0, epoll = epoll_create1(0);
    struct sigaction a = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigset_t none, ours;
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGUSR1);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    sigaction(SIGUSR1, &a, NULL);
    puts("ready");
    fflush(stdout);
    while (handled < 1000) {
        if (epoll_pwait(epoll, &(struct epoll_event){0}, 1, -1, &none) < 0 && errno == EINTR)
            interrupted++;
        else
            other++;
        printf("%d\n", interrupted);
        fflush(stdout);
    }
    printf("%d %d %d\n", handled, interrupted, other);
    return 0;
}
