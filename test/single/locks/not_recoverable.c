/*
 * A robust mutex whose owner died, and which nobody makes consistent. Prints what each
 * pthread_mutex_lock returns.
 */
#include "../../prog/program.h"
static pthread_mutex_t m;
static void *leave(void *arg)
{
    pthread_mutex_lock(&m);
    return arg;
}
static void *again(void *arg)
{
    printf("%d ", pthread_mutex_lock(&m));
    return arg;
}
int main(void)
{
    pthread_mutexattr_t a;
    alarm(20);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &a);
    RUN_THREADS(1, leave, NULL);
    printf("%d ", pthread_mutex_lock(&m));
    pthread_mutex_unlock(&m);
    for (int i = 0; i < 3; i++)
        printf("%d ", pthread_mutex_lock(&m));
    for (int i = 0; i < 3; i++) {
        RUN_THREADS(1, again, NULL);
    }
    puts("");
    return 0;
}
