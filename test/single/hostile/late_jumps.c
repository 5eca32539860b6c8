/* A destructor of thread-specific data jumps by longjmp, also after the tracer's own destructor. */
#include <pthread.h>
#include <setjmp.h>
static pthread_key_t key;
static void destroy(void *p)
{
    jmp_buf here;
    if (setjmp(here) == 0)
        longjmp(here, 1);
    pthread_setspecific(key,
                        p); /* again in the next round, also in the last one, after the tracer */
}
static void *run(void *arg)
{
    pthread_setspecific(key, arg);
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_key_create(&key, destroy);
    pthread_create(&thread, NULL, run, &key);
    return pthread_join(thread, NULL);
}
