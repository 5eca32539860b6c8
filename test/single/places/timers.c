/*
 * Waits of 150 ms that only a timeout ends, twice in a thread or process that does nothing else.
 * The first argument says where:
 *
 *   thread   a thread, below eight functions; before, it waits to be started; after, to be ended
 *   request  a thread, below eight functions, that has no other waits: a request may be deep there
 *   process  a child process
 *   joined   the thread, while the first thread joins it: shorter waits would make the run faster
 *   reaped   the process, while its parent waits for its end
 */
#include "../../prog/program.h"

enum { TIMES = 2, DEPTH = 8, WAIT_MS = 150 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t order = PTHREAD_COND_INITIALIZER;
static bool started, ended, has_end;

static void wait_with_timeout(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!ended && pthread_cond_timedwait(&order, &mutex, &until) == 0)
        ;
}

static void wait_for_order(void)
{
    while (!started)
        pthread_cond_wait(&order, &mutex);
}

static void wait_for_end(void)
{
    while (!ended)
        pthread_cond_wait(&order, &mutex);
}

static __attribute__((noinline)) void below(int functions, void (*last)(void))
{
    if (functions)
        below(functions - 1, last);
    else
        last();
    __asm__ volatile("");
}

static void *run_timers(void *arg)
{
    pthread_mutex_lock(&mutex);
    below(DEPTH, wait_for_order);
    for (int i = 0; i < TIMES; i++)
        below(DEPTH, wait_with_timeout);
    if (has_end)
        below(DEPTH, wait_for_end);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void give(bool *what)
{
    pthread_mutex_lock(&mutex);
    *what = true;
    pthread_cond_signal(&order);
    pthread_mutex_unlock(&mutex);
}

static int with_request(void)
{
    pthread_t t;
    started = true;
    pthread_create(&t, NULL, run_timers, NULL);
    usleep((TIMES + 1) * WAIT_MS * 1000);
    return pthread_join(t, NULL);
}

static int with_thread(bool joined)
{
    pthread_t t;
    has_end = !joined;
    pthread_create(&t, NULL, run_timers, NULL);
    if (!joined)
        usleep(WAIT_MS * 1000);
    give(&started);
    if (!joined) {
        usleep((TIMES + 1) * WAIT_MS * 1000);
        give(&ended);
    }
    return pthread_join(t, NULL);
}

static void poll_with_timeout(void)
{
    static int never[2]; /* with a descriptor: without one the call is a sleep */
    if (!never[1] && pipe(never))
        abort();
    poll(&(struct pollfd){never[0], POLLIN, 0}, 1, WAIT_MS);
}

static int with_process(bool reaped)
{
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < TIMES; i++)
            poll_with_timeout();
        return 0;
    }
    if (!reaped)
        usleep((TIMES + 1) * WAIT_MS * 1000);
    return waitpid(child, NULL, 0) != child;
}

int main(int argc, char **argv)
{
    const char *where = argc > 1 ? argv[1] : "thread";
    bool awaited = strcmp(where, "joined") == 0 || strcmp(where, "reaped") == 0;
    bool thread = strcmp(where, "thread") == 0 || strcmp(where, "joined") == 0;
    if (strcmp(where, "request") == 0)
        return with_request();
    return thread ? with_thread(awaited) : with_process(awaited);
}
