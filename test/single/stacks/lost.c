/* A thread waits for a word; when a line comes the word changes, but nobody wakes the thread. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
static int word = 1;
__attribute__((noinline)) void await_word(void)
{
    syscall(SYS_futex, &word, FUTEX_WAIT, 1, 0, 0, 0);
    _exit(0);
}
static void *wait(void *arg)
{
    await_word();
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait, NULL);
    getchar();
    word = 0; /* no thread is woken; a call that begins anew returns */
    puts("free");
    fflush(stdout);
    return pause();
}
