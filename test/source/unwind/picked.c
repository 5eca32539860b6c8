/* A library with a function that ld.so picks while it binds the first call, by a function that
 * yields. */
#include <sched.h>

static int one(int n)
{
    return n;
}

static int (*pick(void))(int)
{
    sched_yield();
    return one;
}

int picked(int n) __attribute__((ifunc("pick")));
