/* Recursion that no optimizer takes away: one layout, one return address. */
#include "descend.h"

__attribute__((noinline)) void descend(int depth, void (*then)(const void *arg), const void *arg)
{
    if (depth > 1)
        descend(depth - 1, then, arg);
    else
        then(arg);
    __asm__ volatile("");
}
