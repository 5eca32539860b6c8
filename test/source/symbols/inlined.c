/* A wait in a function inlined into another one, or, with APART, into one that stays a function.
 * Tests name the lines, and rename functions by macros. ROUNDS: a program, which waits so often. */
#include <time.h>
#ifdef APART
#define STAYS __attribute__((noinline))
#else
#define STAYS inline __attribute__((always_inline))
#endif

static inline __attribute__((always_inline)) void inner(void)
{
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, 0); // line 13
}

static STAYS void middle(void)
{
    inner(); // line 18
    __asm__ volatile("");
}

__attribute__((noinline, visibility("default"))) void outer(void)
{
    middle(); // line 24
    __asm__ volatile("");
}

#ifdef ROUNDS
int main(void)
{
    for (int i = 0; i < ROUNDS; i++)
        outer();
    return 0;
}
#endif
