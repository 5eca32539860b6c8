/*
 * A thread with the name of the library's, which ends at a byte of standard input, before there is
 * the library's. Prints the number of the first one, and "ready". A debugger keeps the thread that
 * has ended as a zombie. glibc does not know the thread, which makes bare system calls only.
 */
#include "../../prog/truth.h"

static _Alignas(16) char stack[1 << 16];
static _Atomic pid_t there; /* the kernel clears it at the thread's end */

static int run(void *unused)
{
    char c;
    (void)unused;
    RAW(SYS_prctl, PR_SET_NAME, "gotrace");
    return (int)RAW(SYS_read, 0, &c, 1);
}

static void *nothing(void *arg)
{
    return arg;
}

int main(void)
{
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD |
                CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    char c;
    pthread_t thread;
    if (clone(run, stack + sizeof stack, flags, NULL, &there, NULL, &there) < 0)
        return 1;
    printf("%d\n", there);
    fflush(stdout);
    while (there)
        usleep(1000);
    pthread_create(&thread, NULL, nothing, NULL);
    pthread_join(thread, NULL);
    puts("ready");
    fflush(stdout);
    return read(0, &c, 1) < 0;
}
