/* TALKERS threads that log texts of 900 bytes, each of them new. */
#include "../../../preload/gotrace.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
static pthread_barrier_t all;
static void *talk(void *arg)
{
    char s[1000];
    pthread_barrier_wait(&all);
    for (int i = 0; i < 400; i++) {
        snprintf(s, sizeof s, "%ld %d %900s", (long)arg, i, "x");
        gotrace_log(0, "", s);
        for (int k = 0; k < 2; k++)
            sched_yield();
    }
    pthread_barrier_wait(&all);
    return arg;
}
int main(void)
{
    pthread_t t[TALKERS];
    pthread_barrier_init(&all, NULL, TALKERS);
    for (long i = 0; i < TALKERS; i++)
        pthread_create(&t[i], NULL, talk, (void *)i);
    for (int i = 0; i < TALKERS; i++)
        pthread_join(t[i], NULL);
}
