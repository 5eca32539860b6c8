/*
 * Forks (f), and lets its child sleep twice (w), as its standard input says; the child's PID goes
 * to standard output.
 */
#include "../../prog/program.h"

static void child(int from)
{
    char c;
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (read(from, &c, 1) > 0) {
        usleep(20000);
        usleep(20000);
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
        if (c == 'w')
            printf("%d\n", (int)write(ends[1], &c, 1));
        fflush(stdout);
    }
    puts("1 rounds");
}
