/* Has a thread, and unloads a library once calls_a_hook.c is ready to call hooks. */
#include "../../prog/program.h"
static void *nothing(void *arg)
{
    return arg;
}
int main(void)
{
    RUN_THREADS(1, nothing, NULL);
    void *lib = dlopen("libm.so.6", RTLD_NOW);
    ((void (*)(void))dlsym(RTLD_DEFAULT, "get_ready"))();
    return dlclose(lib);
}
