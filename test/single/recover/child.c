/* A forked child sleeps in nap and is killed, after its parent has written several generations. */
#include "../../prog/program.h"

__attribute__((noipa)) static void nap(void)
{
    usleep(24000);
}

int main(void)
{
    int status;
    usleep(20000); /* a while: the parent has several generations by then */
    pid_t child = fork();
    for (int i = 0; child == 0 && i < 3; i++)
        nap();
    if (child == 0)
        kill(getpid(), SIGKILL);
    printf("%d\n", child);
    return waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL ? 0 : 1;
}
