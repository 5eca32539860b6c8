/* A library of the program's own, whose functions sleep for the program. Tests name the lines. */
#include <unistd.h>

void wrap_sleep(int us)
{
    usleep(us); // line 6
}

void outer_sleep(int us)
{
    wrap_sleep(us); // line 11
}
