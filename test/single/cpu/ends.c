/* Ends by the signal of that number, with a signal stack: SIGTERM from itself, or SIGSEGV. */
#include "../../prog/program.h"
#include <sys/uio.h>
static char room[65536];
int main(int argc, char **argv)
{
    int number = atoi(argv[argc - 1]);
    struct iovec nothing = {room, 0};
    sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
    while (clock() < CLOCKS_PER_SEC / 2)
        writev(1, &nothing, 1);
    if (number == SIGTERM)
        kill(getpid(), SIGTERM);
    else
        *(volatile int *)0 = 0;
    return 0;
}
