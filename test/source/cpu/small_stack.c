/*
 * Computes for half a second on a thread that has the signal stack of stack.c. Fails if that was
 * used.
 */
#include "../../prog/program.h"
int untouched(void);
static void *nothing(void *arg)
{
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    while (clock() < CLOCKS_PER_SEC / 2)
        ;
    return !untouched();
}
