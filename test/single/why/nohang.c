/*
 * A thread with 20 children, one after the other: nohang asks|works.
 *
 * asks: it asks by waitpid whether the child of 33 ms has ended, and sleeps 10 ms before it asks
 * again. works: it does two pieces of work of 10 ms, which are sleeps, and then waits for the
 * child, which it lets go on only then.
 *
 * Prints how often it slept.
 */
#include "../../prog/program.h"
#include <sys/wait.h>
enum { CHILDREN = 20, CHILD_US = 33000, ASK_US = 10000, MORE_US = 6000 };
static long slept;
static int go[2];
static __attribute__((noinline)) void await_tool(pid_t child)
{
    for (; waitpid(child, NULL, WNOHANG) == 0; slept++)
        usleep(ASK_US);
}
static __attribute__((noinline)) void write_page(pid_t child)
{
    for (int i = 0; i < 2; i++, slept++)
        usleep(ASK_US);
    if (write(go[1], "x", 1) == 1)
        waitpid(child, NULL, 0);
}
static _Noreturn void run_tool(bool waits)
{
    char c;
    usleep(CHILD_US);
    if (waits && read(go[0], &c, 1) == 1)
        usleep(MORE_US);
    _exit(0);
}
int main(int argc, char **argv)
{
    bool works = argc > 1 && strcmp(argv[1], "works") == 0;
    if (pipe(go) != 0)
        return 1;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0)
            run_tool(works);
        (works ? write_page : await_tool)(child);
    }
    printf("%ld\n", slept);
    return 0;
}
