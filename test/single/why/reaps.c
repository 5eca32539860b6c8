/*
 * Waits for a child that makes a thread and sleeps for 50 ms. With an argument: reaps that child by
 * a call that does not wait, and then waits for the command of the argument, which runs without an
 * environment and so is not traced.
 */
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *arg)
{
    return arg;
}

static int wait_for_command(char *command)
{
    char *args[] = {"sh", "-c", command, NULL}, *none[] = {NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, args, none) != 0)
        return 1;
    return waitpid(child, NULL, 0) != child;
}

/* Returns some time after the child's end: a wait that begins later is not for it. */
static int await_end(pid_t child)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
    return poll(&end, 1, -1) != 1 || usleep(20000);
}

int main(int argc, char **argv)
{
    pid_t child = fork();
    if (child && argc > 1)
        return await_end(child) || waitpid(child, NULL, WNOHANG) != child ||
               wait_for_command(argv[1]);
    if (child)
        return waitpid(child, NULL, 0) != child;
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    usleep(50000);
    return 0;
}
