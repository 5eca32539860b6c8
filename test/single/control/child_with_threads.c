/* Forks a child that has a thread, whose PID it prints. */
#include "naps.h"
int main(void)
{
    pthread_t t;
    pid_t child = fork();
    if (!child) {
        pthread_create(&t, NULL, wait_for_ever, NULL);
        printf("%d\n", getpid());
        fflush(stdout);
    }
    naps();
    return child ? waitpid(child, NULL, 0) != child : 0;
}
