/*
 * Preloaded behind the library. Between a thread's creation in the trace and its first instruction
 * the first generation ends: the drain side then writes of the thread, which has not begun.
 * libgotrace.so's own thread, which does that, goes through at once.
 */
#include "../../prog/program.h"

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    struct timespec ms = {0, 1000000};
    struct stat st = {0};
    char path[4096];
    int state = PTHREAD_CREATE_JOINABLE;
    if (attr)
        pthread_attr_getdetachstate(attr, &state);
    snprintf(path, sizeof path, "%s/%d.out", getenv("FOLDER"), (int)getpid());
    for (int i = 0; state == PTHREAD_CREATE_JOINABLE && !(stat(path, &st) == 0 && st.st_size);
         i++) {
        if (i == 10000)
            abort();
        nanosleep(&ms, NULL);
    }
    return real(thread, attr, start, arg);
}
