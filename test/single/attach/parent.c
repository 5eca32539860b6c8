/*
 * Forks (f), and lets its child sleep twice (w), as its standard input says. The child prints its
 * PID when it begins, and again when it has slept.
 */
#include "../../prog/program.h"

static void say_pid(void)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
}

static void child(int from)
{
    char c;
    say_pid();
    while (read(from, &c, 1) > 0) {
        usleep(20000);
        usleep(20000);
        say_pid();
    }
    _exit(0);
}

int main(void)
{
    char c;
    int ends[2];
    puts("ready");
    fflush(stdout);
    if (pipe(ends))
        return 1;
    while (read(0, &c, 1) == 1 && c != 'q') {
        if (c == 'f' && fork() == 0)
            close(ends[1]), child(ends[0]);
        if (c == 'w' && write(ends[1], &c, 1) != 1)
            return 1;
    }
    puts("1 rounds");
}
