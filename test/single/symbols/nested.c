/* A function within a function, of GNU C. */
#include <time.h>
int main(void)
{
    long ns = 1000000;
    __attribute__((noinline)) void nested(void)
    {
        nanosleep(&(struct timespec){0, ns}, 0); // line 8
    }
    nested(); // line 10
    return 0;
}
