/*
 * threads N: N threads alive at once, all waiting for one broadcast.
 * threads N each: N threads, created and joined one after the other.
 */
#include "program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER, go_on = PTHREAD_COND_INITIALIZER;
static int here, go;

static void *wait_for_all(void *arg)
{
    pthread_mutex_lock(&mutex);
    here++;
    pthread_cond_signal(&all_here);
    while (!go)
        pthread_cond_wait(&go_on, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *nothing(void *arg)
{
    return arg;
}

static void start(pthread_t *thread, void *(*routine)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    if (pthread_create(thread, &attr, routine, arg) != 0)
        abort();
    pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
    size_t n = (size_t)atol(argv[1]), sum = 0;
    pthread_t *thread = malloc(n * sizeof *thread);
    void *result;
    for (size_t i = 0; i < n; i++) {
        start(&thread[i], argc > 2 ? nothing : wait_for_all, (void *)i);
        if (argc > 2) {
            pthread_join(thread[i], &result);
            sum += (size_t)result;
        }
    }
    if (argc == 2) {
        pthread_mutex_lock(&mutex);
        while (here < (int)n)
            pthread_cond_wait(&all_here, &mutex);
        go = 1;
        pthread_cond_broadcast(&go_on);
        pthread_mutex_unlock(&mutex);
        for (size_t i = 0; i < n; i++) {
            pthread_join(thread[i], &result);
            sum += (size_t)result;
        }
    }
    printf("%zu\n", sum);
    free(thread);
    return 0;
}
