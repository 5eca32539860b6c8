/* A library whose thread runs until the library's destructor, which waits for the thread's end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static atomic_bool stop;
static pthread_t thread;

static void *run(void *arg)
{
    while (!stop)
        usleep(1000);
    return arg;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_create(&thread, NULL, run, NULL);
}

__attribute__((destructor)) static void end(void)
{
    stop = true;
    pthread_join(thread, NULL);
    (void)!write(STDERR_FILENO, "joined\n", 7);
}
