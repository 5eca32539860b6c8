/*
 * A mutex that was locked before a fork; in the child another thread waits for it. The parent
 * prints the child's PID.
 */
#include "../../prog/program.h"
static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_it(void *arg)
{
    pthread_mutex_lock(&kept);
    pthread_mutex_unlock(&kept);
    return arg;
}
int main(void)
{
    pthread_t t;
    int status = 1;
    pthread_mutex_lock(&kept);
    pid_t pid = fork();
    if (pid) {
        waitpid(pid, &status, 0);
        printf("%d\n", (int)pid);
        return status;
    }
    pthread_create(&t, NULL, wait_for_it, NULL);
    usleep(2500000); /* two looks */
    pthread_mutex_unlock(&kept);
    return pthread_join(t, NULL);
}
