/*
 * Threads, waits and allocations at every stage of a process's life, in this order: before all
 * constructors (.preinit_array), in constructors, in main, in a library's constructor and
 * destructor (stages LIBRARY...: this file again, built with -DLIBRARY -shared), in the last
 * destructors of threads, in atexit handlers, in destructors. Prints each that worked; the output
 * does not depend on timing.
 */
#include "../prog/program.h"

struct meeting {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem;
    int here, fds[2];
};

static void *meet(void *arg)
{
    struct meeting *m = arg;
    char c = 1;
    pthread_mutex_lock(&m->mutex);
    m->here = 1;
    pthread_cond_signal(&m->cond);
    pthread_mutex_unlock(&m->mutex);
    usleep(1000);
    if (write(m->fds[1], &c, 1) != 1)
        abort();
    usleep(1000);
    sem_post(&m->sem);
    return malloc(100);
}

/* Waits for another thread in several ways. */
static void use(const char *where)
{
    struct meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, .here = 0};
    pthread_t thread;
    void *result = NULL;
    char c = 0;
    sem_init(&m.sem, 0, 0);
    if (pipe(m.fds) != 0 || pthread_create(&thread, NULL, meet, &m) != 0)
        abort();
    pthread_mutex_lock(&m.mutex);
    while (!m.here)
        pthread_cond_wait(&m.cond, &m.mutex);
    pthread_mutex_unlock(&m.mutex);
    ssize_t n = read(m.fds[0], &c, 1);
    sem_wait(&m.sem);
    int error = pthread_join(thread, &result);
    free(result);
    close(m.fds[0]);
    close(m.fds[1]);
    dprintf(1, "%s: %zd %d %d %d\n", where, n, c, error, result != NULL);
}

#ifdef LIBRARY

__attribute__((constructor)) static void loaded(void)
{
    use(LIBRARY " loaded");
}

__attribute__((destructor)) static void unloaded(void)
{
    use(LIBRARY " unloaded");
}

int answer(void)
{
    return 42;
}

#else

static atomic_int stop;
static pthread_t companion;
static pthread_key_t first_key, last_key;

/* Started before anything else is, and there to the end. */
static void *accompany(void *arg)
{
    while (!stop)
        usleep(500);
    return arg;
}

static void at_exit(void)
{
    use("atexit");
}

static void at_exit_early(void)
{
    use("atexit, registered before main");
}

static void preinit(void)
{
    use("preinit");
    if (pthread_create(&companion, NULL, accompany, NULL) != 0)
        abort();
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = preinit;

static void key_destructor(void *round)
{
    if ((intptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(last_key, (void *)((intptr_t)round + 1));
    else
        use("last round of destructors");
}

static void first_key_destructor(void *arg)
{
    (void)arg;
    use("first key's destructor");
}

/* The oldest key there is: its destructors run before the tracer's in each round. */
__attribute__((constructor)) static void construct(void)
{
    use("constructor");
    pthread_key_create(&first_key, first_key_destructor);
    atexit(at_exit_early);
}

static void thread_local_destructor(void *arg)
{
    use(arg);
}

int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle;

static void *end_slowly(void *arg)
{
    pthread_setspecific(first_key, (void *)1);
    pthread_setspecific(last_key, (void *)1);
    __cxa_thread_atexit_impl(thread_local_destructor, "thread_local", &__dso_handle);
    return arg;
}

static void nothing(int signal)
{
    static sem_t sem;
    (void)signal;
    sem_post(&sem);
    sem_trywait(&sem);
}

static void *look_up(void *arg)
{
    long found = 0;
    for (int i = 0; i < 2000; i++)
        found += dlsym(RTLD_DEFAULT, "pthread_mutex_lock") &&
                 !dlsym(RTLD_DEFAULT, "no such name") && dlerror();
    return arg ? (void *)found : NULL;
}

/* The loader at work in several threads, under signals. */
static void storm_of_loading(char **libraries)
{
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    pthread_t thread[2];
    void *found[2];
    long answers = 0;
    signal(SIGALRM, nothing);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, look_up, "found");
    for (int i = 0; i < 50; i++) {
        void *lib = dlopen(libraries[0], RTLD_NOW);
        answers += ((int (*)(void))dlsym(lib, "answer"))();
        dlclose(lib);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], &found[i]);
    setitimer(ITIMER_REAL, &never, NULL);
    dprintf(1, "looked up %ld %ld, answered %ld\n", (long)found[0], (long)found[1], answers);
}

__attribute__((destructor)) static void destruct(void)
{
    use("destructor");
    stop = 1;
    pthread_join(companion, NULL);
    use("destructor, alone");
}

int main(int argc, char **argv)
{
    atexit(at_exit);
    use("main");
    pthread_key_create(&last_key, key_destructor);
    RUN_THREADS(1, end_slowly, NULL);
    for (int i = 1; i < argc; i++)
        if (!dlopen(argv[i], RTLD_NOW | (i > 1 ? RTLD_DEEPBIND : 0)))
            puts(dlerror());
    if (argc > 3)
        storm_of_loading(argv + 3);
    return 5;
}

#endif
