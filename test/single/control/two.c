/* Parent and child sleep for each byte. Prints the PID of the child. */
#include "naps.h"
int main(void)
{
    pid_t child = fork();
    if (!child) {
        printf("%d\n", getpid());
        fflush(stdout);
    }
    naps();
    return child ? waitpid(child, NULL, 0) != child : 0;
}
