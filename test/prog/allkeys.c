/*
 * Makes all keys of thread-specific data that there are, while a thread waits that was there
 * before; then threads that use each of them. What it prints is known: see test_programs.py.
 */
#include "program.h"
#include <threads.h>

enum { THREADS = 20 };

static pthread_key_t keys[PTHREAD_KEYS_MAX + 1];
static int made;
static atomic_int destroyed, wrong;
static pthread_barrier_t barrier;

static void destroy(void *value)
{
    destroyed++;
    wrong += (intptr_t)value <= 0 || (intptr_t)value > made;
}

static void use_all(void)
{
    for (int i = 0; i < made; i++) {
        wrong += pthread_getspecific(keys[i]) != NULL;
        pthread_setspecific(keys[i], (void *)(intptr_t)(i + 1));
    }
    for (int i = 0; i < made; i++)
        wrong += pthread_getspecific(keys[i]) != (void *)(intptr_t)(i + 1);
}

static void *was_there(void *arg)
{
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    use_all();
    return arg;
}

static void *comes_later(void *arg)
{
    use_all();
    return arg;
}

int main(void)
{
    pthread_t early;
    tss_t tss;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&early, NULL, was_there, NULL);
    pthread_barrier_wait(&barrier);
    while (made <= PTHREAD_KEYS_MAX && (errno = pthread_key_create(&keys[made], destroy)) == 0)
        made++;
    printf("keys %d of %d, then %d\n", made, PTHREAD_KEYS_MAX, errno == EAGAIN);
    pthread_barrier_wait(&barrier);
    pthread_join(early, NULL);
    for (int i = 0; i < THREADS; i++) {
        RUN_THREADS(1, comes_later, NULL);
    }
    use_all();
    printf("destroyed %d, wrong %d\n", destroyed / made, wrong);
    pthread_key_delete(keys[0]);
    printf("one again: %d\n", tss_create(&tss, NULL) == thrd_success);
    return 0;
}
