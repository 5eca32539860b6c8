/* Installs a filter for all threads that kills the process for futex(2), which no thread calls. */
#include "../../prog/program.h"

enum { THREADS = 6 };

static atomic_uint rounds[THREADS];

static void *sleep_on(void *round)
{
    for (;;) {
        usleep(1);
        ++*(atomic_uint *)round;
    }
    return NULL;
}

static void await_rounds(void)
{
    for (int i = 0; i < THREADS; i++)
        for (unsigned then = rounds[i] + 2; rounds[i] < then;)
            usleep(1000);
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread, NULL, sleep_on, &rounds[i]);
    await_rounds();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                FILTER_OF(SYS_futex, SECCOMP_RET_KILL_PROCESS)))
        return 1;
    await_rounds();
    _exit(0);
}
