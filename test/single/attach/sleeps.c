/* Only sleeps, by sleep(3). Prints "ready" before. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    puts("ready");
    fflush(stdout);
    for (;;)
        sleep(3600);
}
