/*
 * Loads the library that it is given, records, and closes the library. Prints what each step
 * returns.
 */
#include "../../prog/program.h"

static void *nothing(void *arg)
{
    return arg;
}

static int make_thread(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_GLOBAL);
    int (*start)(void) = (int (*)(void))dlsym(library, "gotrace_start");
    printf("%d", start());
    printf(" %d", make_thread());
    printf(" %d", dlclose(library));
    printf(" %d\n", make_thread());
    return 0;
}
