/* Sets and reads the actions of the signals that control the recording. */
#include "../../prog/program.h"
static void h(int s)
{
    (void)s;
    puts("its own");
    fflush(stdout);
}
int main(void)
{
    struct sigaction old, its = {.sa_handler = h};
    sigaction(SIGUSR1, &its, &old);
    printf("%d\n", old.sa_handler == SIG_DFL);
    printf("%d\n", signal(SIGUSR1, SIG_IGN) == h);
    sigaction(SIGUSR1, NULL, &old);
    printf("%d\n", old.sa_handler == SIG_IGN);
    raise(SIGUSR1);
    signal(SIGUSR2, h);
    raise(SIGUSR2);
}
