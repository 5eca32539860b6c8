/* Waits for a child that makes a thread and sleeps for 50 ms. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *arg)
{
    return arg;
}

int main(void)
{
    pid_t child = fork();
    if (child)
        return waitpid(child, NULL, 0) != child;
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    usleep(50000);
    return 0;
}
