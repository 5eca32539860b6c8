/*
 * A program with a dl_iterate_phdr of its own, as Seastar has: it allocates, locks and writes, and
 * counts its calls. Only the program's own may come.
 */
#include "truth.h"

#include <link.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int calls;

int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    pthread_mutex_lock(&mutex);
    free(malloc(100));
    calls += write(1, "a look\n", 7) == 7;
    pthread_mutex_unlock(&mutex);
    __typeof__(&dl_iterate_phdr) next = (__typeof__(next))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return next(visit, arg);
}

static int count(struct dl_phdr_info *info, size_t size, void *modules)
{
    (void)info;
    (void)size;
    ++*(int *)modules;
    return 0;
}

static void *sleeper(void *arg)
{
    usleep(1000);
    return arg;
}

int main(void)
{
    int modules = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, sleeper, NULL);
    pthread_join(thread, NULL);
    dl_iterate_phdr(count, &modules);
    printf("%d of the program's, modules: %s\n", calls, modules > 1 ? "several" : "none");
    return 0;
}
