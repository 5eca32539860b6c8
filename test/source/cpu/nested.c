/* A library whose destructor loads and unloads another one, and takes 0.7 s. */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((destructor)) static void end(void)
{
    dlclose(dlopen("libm.so.6", RTLD_NOW));
    usleep(700000);
}
