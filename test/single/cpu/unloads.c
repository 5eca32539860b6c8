/* Computes while the library that it is given is unloaded. */
#include "burners.h"
#include "../../../preload/gotrace.h"
int main(int argc, char **argv)
{
    pthread_t thread;
    double seconds = 1;
    pthread_create(&thread, NULL, burn, &seconds);
    gotrace_snapshot(
        NULL); /* what our thread has to load for names waits for the loader, as anybody */
    dlclose(dlopen(argv[argc - 1], RTLD_NOW));
    pthread_join(thread, NULL);
    return 0;
}
