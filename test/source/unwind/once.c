/* Sleeps by the same functions in and out of two nested pthread_once. */
#include "../../prog/program.h"
#define NOINLINE __attribute__((noinline))
static pthread_once_t outer_once = PTHREAD_ONCE_INIT, inner_once = PTHREAD_ONCE_INIT;
NOINLINE static void doze(void)
{
    struct timespec us = {0, 1000};
    nanosleep(&us, 0);
    __asm__ volatile("");
}
NOINLINE static void deeper(void)
{
    doze();
    __asm__ volatile("");
}
NOINLINE static void thrice(void)
{
    for (int i = 0; i < 3; i++) {
        doze();
        deeper();
    }
}
static void inner(void)
{
    thrice();
    __asm__ volatile("");
}
static void outer(void)
{
    thrice();
    pthread_once(&inner_once, inner);
    thrice();
}
int main(void)
{
    thrice();
    pthread_once(&outer_once, outer);
    thrice();
    return 0;
}
