/* Stacks that run over, in a thread and in main; the handler yields on a stack of its own. */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static sigjmp_buf back;
static volatile int depth;
static void handler(int number)
{
    sched_yield();
    siglongjmp(back, number);
}
__attribute__((noinline)) static int down(int n)
{
    volatile char room[SIZE];
    room[0] = 1;
    depth = n;
    return down(n + 1) + room[0];
}
static void *run(void *arg)
{
    stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&alternate, 0);
    if (!sigsetjmp(back, 1))
        down(0);
    printf("%d\n", depth > 0);
    return arg;
}
int main(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
    run(0);
    return 0;
}
