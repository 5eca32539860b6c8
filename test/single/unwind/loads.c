/* Loads one library after the other, and calls its outer. Prints where that was. */
#include "../../prog/program.h"
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *lib = dlopen(argv[i], RTLD_NOW);
        void (*outer)(void) = (void (*)(void))dlsym(lib, "outer");
        printf("%p\n", (void *)outer);
        outer();
        dlclose(lib);
    }
    return 0;
}
