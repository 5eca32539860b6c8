/* A C extension that keeps the interpreter's lock joins a thread that needs the lock: f is
 * PyGILState_Ensure. */
#include <pthread.h>
static void *(*ensure)(void);
static void *work(void *arg)
{
    (*(int (*)(void))ensure)();
    return arg;
}
void join(void *(*f)(void))
{
    pthread_t t;
    ensure = f;
    pthread_create(&t, 0, work, 0);
    pthread_join(t, 0);
}
