/* A thread made by clone(2) itself, with its parent's thread-local variables, that sleeps. */
#include "program.h"

static _Atomic int done;

static int cloned(void *arg)
{
    struct timespec ms5 = {0, 5000000};
    (void)arg;
    for (int i = 0; i < 4; i++)
        nanosleep(&ms5, NULL);
    done = 1;
    syscall(SYS_exit, 0); /* of the thread; libc knows nothing of it */
    return 0;
}

int main(void)
{
    enum { STACK = 256 << 10 };
    struct timespec ms1 = {0, 1000000};
    char *stack = malloc(STACK);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (clone(cloned, stack + STACK, flags, NULL) < 0)
        return 1;
    while (!done)
        nanosleep(&ms1, NULL);
    puts("cloned");
    return 0;
}
