/*
 * A preloaded library in which a thread finds a mutex taken by its first trylock, and free by its
 * next one: a wait that is over before it was one. With -DWAITS every second such mutex is still
 * taken in all TRIES that the tracer makes, and pthread_mutex_lock waits for it for 20 us.
 */
#define _GNU_SOURCE
#include "../../prog/program.h"

typedef int lock_fn(pthread_mutex_t *mutex);

#ifdef WAITS
enum { TRIES = 5, ROUND = 2 + TRIES, WAIT_NS = 20000 };

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    for (long until = now() + WAIT_NS; now() < until;)
        ;
    return ((lock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_lock"))(mutex);
}
#else
enum { ROUND = 2 };
#endif

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    static __thread int tries;
    lock_fn *real = (lock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_trylock");
    return ++tries % ROUND == 2 % ROUND ? real(mutex) : EBUSY;
}
