/* A thread waits for an hour by futex(2), made by syscall. */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static unsigned word;
static void *wait(void *arg)
{
    struct timespec hour = {3600, 0};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &hour, NULL, 0);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait, NULL);
    return pause();
}
