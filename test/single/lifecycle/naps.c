/* Its only thread sleeps 300 times. Then the program is killed. */
#include <signal.h>
#include <time.h>

int main(void)
{
    for (int i = 0; i < 300; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return raise(SIGKILL);
}
