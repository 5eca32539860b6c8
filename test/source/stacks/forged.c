/* A thread reads a byte in a function to whose name the test gives a newline. */
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) int forged_DEADLOCK(char *c)
{
    return (int)read(0, c, 1) + 1;
}

int main(void)
{
    char c;
    puts("ready");
    fflush(stdout);
    return forged_DEADLOCK(&c);
}
