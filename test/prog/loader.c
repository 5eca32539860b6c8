/* Loads each library named, calls its outer(), and unloads it. */
#include <dlfcn.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *lib = dlopen(argv[i], RTLD_NOW);
        void (*outer)(void) = (void (*)(void))dlsym(lib, "outer");
        if (!outer)
            return 1;
        outer();
        dlclose(lib);
    }
    return 0;
}
