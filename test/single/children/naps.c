/*
 * Three children that sleep in nap; the third becomes another program. Exits with the sum of their
 * statuses.
 */
#include "../../prog/program.h"

__attribute__((noipa)) static void nap(void)
{
    usleep(50000);
}

int main(void)
{
    int status, sum = 0;
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            nap();
            if (i == 2)
                execlp("sleep", "sleep", "0.05", NULL);
            _exit(i);
        }
        wait(&status);
        sum += WEXITSTATUS(status);
    }
    return sum;
}
