/*
 * Two threads mix blocks of a library loaded with RTLD_DEEPBIND with their own: each frees the
 * other's.
 */
#include "../../prog/program.h"

static void *(*make)(size_t);
static void (*take)(void *);

static void *mix(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        void *theirs = make(100000), *ours = malloc(1000);
        memset(theirs, 1, 100000);
        free(theirs);
        take(ours);
    }
    return arg;
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_DEEPBIND);
    make = dlsym(library, "make");
    take = dlsym(library, "take");
    RUN_THREADS(2, mix, NULL);
    puts("mixed");
    return 0;
}
