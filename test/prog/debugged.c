/*
 * Three threads that wait, each in a function of its own, for a debugger to look at them. When
 * standard input says to go on they count together, each so many times, and the sum is printed.
 */
#include "program.h"

#define TIMES 1000

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool goes_on;
static int ends[2], sum;
static _Atomic int inside;

#define STEP __attribute__((noinline, noclone)) static void

STEP wait_for_mutex(void)
{
    inside++;
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
}

STEP wait_for_condition(void)
{
    inside++;
    pthread_mutex_lock(&mutex);
    while (!goes_on)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

STEP wait_for_input(void)
{
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    inside++;
    while (poll(&p, 1, -1) != 1)
        ;
}

STEP count_up(void)
{
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        pthread_mutex_unlock(&mutex);
    }
}

static void *thread_work(void *step)
{
    ((void (*)(void))step)();
    count_up();
    return NULL;
}

STEP wait_for_command(void)
{
    char c;
    while (inside < 3)
        poll(NULL, 0, 1);
    puts("ready");
    fflush(stdout);
    while (read(0, &c, 1) < 0)
        ;
}

int main(void)
{
    void (*const steps[])(void) = {wait_for_mutex, wait_for_condition, wait_for_input};
    pthread_t threads[3];
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (pipe(ends) != 0)
        return 1;
    pthread_mutex_lock(&held);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, thread_work, (void *)steps[i]);
    wait_for_command();
    pthread_mutex_unlock(&held);
    pthread_mutex_lock(&mutex);
    goes_on = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    if (write(ends[1], "x", 1) != 1)
        return 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("counted %d\n", sum);
    return 7;
}
