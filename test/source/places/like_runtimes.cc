/* A program's own functions with names like those of Python's interpreter and of Java's. */
#include <unistd.h>

#define OWN __attribute__((noinline)) static void

OWN wait_in_step()
{
    usleep(3000);
    __asm__ volatile("");
}

OWN wait_in_init()
{
    usleep(3000);
    __asm__ volatile("");
}

struct Monitor {
    void wait_for_change();
};

__attribute__((noinline)) void Monitor::wait_for_change()
{
    usleep(3000);
    __asm__ volatile("");
}

extern "C" __attribute__((noinline)) void Pyre_step()
{
    wait_in_step();
    usleep(2000);
    __asm__ volatile("");
}

extern "C" __attribute__((noinline)) void PyInit_like()
{
    wait_in_init();
    __asm__ volatile("");
}

int main()
{
    Pyre_step();
    PyInit_like();
    Monitor().wait_for_change();
}
