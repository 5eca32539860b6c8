/*
 * Ways on which a program may have to wait for the tracer, whose output goes nowhere. argv[1] names
 * one; argv[2] is "threads" for a program that has made another thread, "full" for one that never
 * has, and has done much.
 */
#include "../prog/program.h"
#include "../../preload/gotrace.h"

#include <linux/seccomp.h>

static void *work(void *arg)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    return arg;
}

static void thread(void)
{
    RUN_THREADS(1, work, NULL);
}

/* With GOTRACE_SYSCALLS=all each is an event. */
static void fill(void)
{
    int fd = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 20000; i++)
        (void)!write(fd, "", 1);
    close(fd);
}

/* A program that is not traced, and waits for nobody. */
static void execute(void)
{
    execle("/bin/sh", "sh", "-c", "echo executed; exit 3", (char *)NULL, (char *[]){NULL});
}

static void no_exec(void)
{
    for (int i = 0; i < 3; i++)
        execl("/nonexistent", "nonexistent", (char *)NULL);
}

static void confine(void)
{
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    syscall(SYS_exit, 3);
}

static void call(const char *way)
{
    if (strcmp(way, "stop") == 0 && gotrace_stop)
        gotrace_stop();
    else if (strcmp(way, "start") == 0 && gotrace_start)
        gotrace_start();
    else if (strcmp(way, "snapshot") == 0 && gotrace_snapshot)
        gotrace_snapshot(NULL);
}

static void forks(void)
{
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            close(0);
            _exit(3);
        }
        wait(NULL);
    }
}

int main(int argc, char **argv)
{
    const char *way = argv[argc > 1];
    if (strcmp(argv[argc > 2 ? 2 : 0], "threads") == 0)
        thread();
    else
        fill();
    if (strcmp(way, "exec") == 0)
        execute();
    else if (strcmp(way, "no-exec") == 0)
        no_exec();
    else if (strcmp(way, "_exit") == 0)
        _exit(3);
    else if (strcmp(way, "quick_exit") == 0)
        quick_exit(3);
    else if (strcmp(way, "abort") == 0)
        abort();
    else if (strcmp(way, "SYS_exit_group") == 0)
        syscall(SYS_exit_group, 3);
    else if (strcmp(way, "last-thread") == 0)
        pthread_exit(NULL);
    else if (strcmp(way, "SYS_exit") == 0)
        syscall(SYS_exit, 3);
    else if (strcmp(way, "confine") == 0)
        confine();
    else if (strcmp(way, "SIGTERM") == 0)
        raise(SIGTERM);
    else if (strcmp(way, "fork") == 0)
        forks();
    else
        call(way);
    puts("at the end");
    return 3;
}
