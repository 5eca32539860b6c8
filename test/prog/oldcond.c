/* A program linked against the condition variables from before glibc 2.3.2. */
#include "truth.h"

#if defined(__x86_64__)
__asm__(".symver pthread_cond_wait,pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_signal,pthread_cond_signal@GLIBC_2.2.5");
#endif

/* The old object is a single pointer: what follows it must not be touched. */
static struct {
    void *object;
    char after[sizeof(pthread_cond_t)];
} cond = {.after = "untouched"};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int go;
static _Atomic int sleeper;

static void *waiter(void *arg)
{
    pthread_mutex_lock(&mutex);
    sleeper = tid();
    while (!go)
        pthread_cond_wait((pthread_cond_t *)&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, waiter, NULL);
    until_asleep(&sleeper);
    pthread_mutex_lock(&mutex);
    go = 1;
    dlsym(RTLD_DEFAULT, "no such function"); /* its error is there for as long as nobody asks */
    pthread_cond_signal((pthread_cond_t *)&cond);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    puts(cond.after);
    puts(dlerror());
    return cond.object == NULL;
}
