/* A library with 70 MiB of debug information, whose functions wait. */
#include <unistd.h>

__asm__(".section .debug_types\n.zero 70 << 20\n.previous");

__attribute__((noinline)) int first(void)
{
    return usleep(1000) + 1;
}

__attribute__((noinline)) int second(void)
{
    return usleep(1000) + 1;
}
