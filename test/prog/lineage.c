/*
 * A process that becomes others, step by step as its argument says, a letter each:
 *
 *   s  sleeps for 8 ms: what it becomes then has a trace of its own beside this one's
 *   f  forks; the child goes on with the next step, the parent waits for it and ends
 *   F  the same in a thread that is made for it
 *   c  forks a child that sleeps for 8 ms and ends; goes on when it has
 *   o  forks a child that sleeps for 8 ms and ends; goes on at once
 *   e  becomes this program by exec, which goes on with the next step
 *   t  the same in a thread that is made for it
 *   v  vforks; the child becomes this program, the parent waits for it and ends
 *   p  the same by posix_spawn
 *   d  daemon(3)
 *   k  is killed
 *
 * Each program that begins writes a line: its process, and what its argument is.
 */
#include "truth.h"

#include <spawn.h>

enum { LIVES_US = 8000 };

static const char *program;

static char **arguments(const char *steps)
{
    static char *args[3];
    args[0] = (char *)program;
    args[1] = (char *)steps;
    return args;
}

static void become(const char *steps)
{
    execv(program, arguments(steps));
    _exit(1);
}

static void *become_in_thread(void *steps)
{
    become(steps);
    return NULL;
}

static void run_in_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, arg) == 0)
        pthread_join(thread, NULL);
}

/* Its parent waits for it and ends. Returns in the child. */
static void go_on_in(pid_t child)
{
    int status;
    if (child == 0)
        return;
    waitpid(child, &status, 0);
    exit(0);
}

static pid_t spawn(const char *steps)
{
    pid_t child = -1;
    posix_spawn(&child, program, NULL, NULL, arguments(steps), environ);
    return child;
}

static pid_t make_by_vfork(const char *steps)
{
    pid_t child = vfork();
    if (child == 0)
        become(steps);
    return child;
}

static void make_that_ends(bool wait)
{
    pid_t child = fork();
    if (child == 0) {
        usleep(LIVES_US);
        exit(0);
    }
    if (wait)
        waitpid(child, NULL, 0);
}

static void *fork_and_go_on(void *steps);

static void go_on(const char *steps)
{
    pid_t child;
    for (; *steps; steps++) {
        switch (*steps) {
        case 's': usleep(LIVES_US); break;
        case 'f': go_on_in(fork()); break;
        case 'F': run_in_thread(fork_and_go_on, (void *)(steps + 1)); exit(0);
        case 'c': make_that_ends(true); break;
        case 'o': make_that_ends(false); break;
        case 'e': become(steps + 1); break;
        case 't': run_in_thread(become_in_thread, (void *)(steps + 1)); break;
        case 'v':
            if ((child = make_by_vfork(steps + 1)) > 0)
                go_on_in(child);
            break;
        case 'p': go_on_in(spawn(steps + 1)); break;
        case 'd': daemon(1, 1); break;
        case 'k': kill(getpid(), SIGKILL); break;
        default: exit(2);
        }
    }
}

static void *fork_and_go_on(void *steps)
{
    go_on_in(fork());
    go_on(steps);
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    program = argv[0];
    dprintf(1, "%d %s\n", getpid(), argv[1]);
    go_on(argv[1]);
    return 0;
}
