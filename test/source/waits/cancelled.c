/*
 * A thread that is to be cancelled makes CALL on a semaphore with one token. Prints whether it was
 * cancelled, and the tokens.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>
static sem_t sem;
static void *take(void *arg)
{
    struct timespec until = {0x7fffffff, 0};
    (void)until;
    pthread_cancel(pthread_self());
    CALL;
    return arg;
}
int main(void)
{
    pthread_t thread;
    void *result;
    int tokens;
    sem_init(&sem, 0, 1);
    pthread_create(&thread, NULL, take, NULL);
    pthread_join(thread, &result);
    sem_getvalue(&sem, &tokens);
    printf("%s, %d left\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled", tokens);
    return 0;
}
