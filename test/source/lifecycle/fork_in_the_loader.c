/*
 * Forks while our code looks at the loader's list of modules. That takes as long as this program
 * likes: its dl_iterate_phdr is called in between. Prints the status of a child that uses the
 * loader.
 */
#include <link.h>

#include "../../prog/program.h"

static sem_t inside, forked;
static __thread int closes;
static int (*callback)(struct dl_phdr_info *, size_t, void *);

/* The loader's lock is held here. */
static int linger(struct dl_phdr_info *info, size_t size, void *arg)
{
    if (closes) {
        struct timespec until;
        closes = 0;
        sem_post(&inside);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 300000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        sem_timedwait(&forked, &until);
    }
    return callback(info, size, arg);
}

int dl_iterate_phdr(int (*fn)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *) =
        dlsym(RTLD_NEXT, "dl_iterate_phdr");
    if (!closes)
        return real(fn, arg);
    callback = fn;
    return real(linger, arg);
}

static void *close_one(void *lib)
{
    closes = 1;
    dlclose(lib);
    if (closes) /* no thread looked */
        sem_post(&inside);
    return NULL;
}

static int use_loader(void)
{
    void *lib = dlopen("libresolv.so.2", RTLD_NOW);
    return lib && dlclose(lib) == 0 ? 0 : 1;
}

int main(void)
{
    pthread_t t;
    int status = 0;
    void *lib = dlopen("libm.so.6", RTLD_NOW), *other = dlopen("libanl.so.1", RTLD_NOW);
    dlopen("libm.so.6",
           RTLD_NOW); /* dlclose unloads nothing: a fork while it does leaves a lock of libc held */
    sem_init(&inside, 0, 0);
    sem_init(&forked, 0, 0);
    (void)other;
    pthread_create(&t, NULL, close_one, lib);
    sem_wait(&inside);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        _exit(use_loader());
    }
    sem_post(&forked);
    pthread_join(t, NULL);
    waitpid(pid, &status, 0);
    printf("%d\n", status);
    return 0;
}
