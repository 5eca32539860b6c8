/* A module of Python's, as far as it gets: it waits in functions of its own, and then fails. */
#include <stddef.h>
#include <unistd.h>

void *PyInit_spam(void);

static __attribute__((noinline)) int PySpam_Wait(void)
{
    return usleep(20000);
}

void *PyInit_spam(void)
{
    return usleep(20000) + PySpam_Wait() ? NULL : NULL;
}
