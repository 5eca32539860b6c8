/* A library with a function whose frame is SIZE bytes large. */
#include <time.h>
__attribute__((noinline)) void outer(void)
{
    volatile char room[SIZE];
    struct timespec us = {0, 1000};
    room[0] = 1;
    nanosleep(&us, 0);
    room[1] = 1;
}
