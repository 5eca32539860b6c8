/* Its first thread waits for a child of vfork, which reads standard input. */
#include "../../prog/program.h"
static void *idle(void *arg)
{
    pause();
    return arg;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    puts("ready");
    fflush(stdout);
    if (vfork() == 0) {
        char c;
        _exit(read(0, &c, 1) < 0);
    }
    puts("on");
    return 0;
}
