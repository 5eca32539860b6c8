/* Calls work of with_threads.c five times. */
#include <time.h>

void work(void);

int main(void)
{
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    for (int i = 0; i < 5; i++)
        work();
    return 0;
}
