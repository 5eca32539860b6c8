/* Loads and unloads a library 200 times and calls its work. Prints how much CPU time that took. */
#include "burners.h"
static const char *library;
static void *loads(void *unused)
{
    (void)unused;
    double before = cpu();
    for (int i = 0; i < 200; i++) {
        void *it = dlopen(library, RTLD_NOW);
        ((void (*)(void))dlsym(it, "work"))();
        if (dlclose(it))
            abort();
    }
    return sum(before);
}
int main(int argc, char **argv)
{
    library = argv[argc - 1];
    printf("%f\n", threads(1, loads, 0));
    return 0;
}
