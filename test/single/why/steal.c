/*
 * Four threads take pieces of work from one counter. Three of them look for it first, so they take
 * fewer: a piece each EXECUTE_US + LOOK_US, the first thread one each EXECUTE_US. They end together
 * but for one piece: the last ones to end are those that look.
 */
#include "../../prog/program.h"

enum { THREADS = 4, PIECES = 165, EXECUTE_US = 3000, LOOK_US = 12000 };

static atomic_int left = PIECES;

static void __attribute__((noinline)) look(void)
{
    usleep(LOOK_US);
}

static void __attribute__((noinline)) execute(void)
{
    usleep(EXECUTE_US);
}

static void *work(void *first)
{
    while (atomic_fetch_sub(&left, 1) > 0) {
        if (!first)
            look();
        execute();
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, i ? NULL : &left);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
