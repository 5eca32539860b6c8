/*
 * A program that keeps the handlers of pthread_atfork(3) in a list of its own, and runs them around
 * clone(2), as a browser's fork server does. Makes ten children, and prints how many ended well.
 */
#include "../../prog/program.h"

enum { HANDLERS = 64, CHILDREN = 10, STATUS = 5 };

static struct {
    void (*before)(void), (*parent)(void), (*child)(void);
} handler[HANDLERS];
static int handlers;

/* What pthread_atfork calls, which is linked into each library. */
int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void),
                      void *library)
{
    (void)library;
    handler[handlers].before = before;
    handler[handlers].parent = parent;
    handler[handlers++].child = child;
    return 0;
}

static int in_child(void *unused)
{
    (void)unused;
    for (int i = 0; i < handlers; i++) {
        if (handler[i].child)
            handler[i].child();
    }
    _exit(STATUS);
}

static bool child_ends_well(void)
{
    static _Alignas(16) char stack[64 << 10];
    int status = 0;
    for (int i = handlers; i-- > 0;) {
        if (handler[i].before)
            handler[i].before();
    }
    pid_t pid = clone(in_child, stack + sizeof stack, SIGCHLD, NULL);
    for (int i = 0; i < handlers; i++) {
        if (handler[i].parent)
            handler[i].parent();
    }
    return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == STATUS;
}

int main(void)
{
    int well = 0;
    for (int i = 0; i < CHILDREN; i++)
        well += child_ends_well();
    printf("%d of %d\n", well, CHILDREN);
    return 0;
}
