/*
 * A process that executes a program, which does not end because its parent debugs one of its
 * threads. Prints the PID and the TID of that thread.
 */
#include "../../prog/program.h"
#include <sys/ptrace.h>
static int told[2], go[2];
static void *debugged(void *arg)
{
    long tid = syscall(SYS_gettid);
    if (write(told[1], &tid, sizeof tid) < 0)
        return arg;
    pause();
    return arg;
}
static void *executes(void *arg)
{
    char c;
    if (read(go[0], &c, 1) == 1)
        execl("/bin/true", "true", NULL);
    return arg;
}
int main(void)
{
    long tid;
    if (pipe(told) || pipe(go))
        return 1;
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, debugged, NULL);
        pthread_create(&thread, NULL, executes, NULL);
        return pause();
    }
    if (read(told[0], &tid, sizeof tid) != sizeof tid ||
        ptrace(PTRACE_SEIZE, (pid_t)tid, 0, 0) != 0 || write(go[1], "", 1) != 1)
        return 1;
    printf("%d %ld\n", child, tid);
    fflush(stdout);
    return getchar();
}
