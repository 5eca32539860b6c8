/* A library whose child processes take END_MS for their end, after all else in them has ended. */
#include <unistd.h>

static pid_t first;

__attribute__((constructor)) static void begin(void)
{
    first = getpid();
}

__attribute__((destructor)) static void end(void)
{
    if (getpid() != first)
        usleep(END_MS * 1000);
}
