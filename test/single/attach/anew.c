/* io_getevents(2) with a timeout of 3 ms, until there is something on standard input. Prints how
 * long the longest took, and how many. */
#include "../../prog/program.h"

static unsigned long context;
static long longest;

static void await_io(void)
{
    struct timespec time = {.tv_nsec = 3000000};
    char event[64];
    uint64_t since = now_ns();
    syscall(SYS_io_getevents, context, 1, 1, event, &time);
    long us = (long)(now_ns() - since) / 1000;
    longest = us > longest ? us : longest;
}

int main(void)
{
    int rounds = 0;
    if (syscall(SYS_io_setup, 1, &context))
        return 1;
    puts("ready");
    fflush(stdout);
    for (; poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, 0) == 0; rounds++) {
        usleep(3000);
        await_io();
    }
    fprintf(stderr, "%ld us\n", longest);
    printf("%d rounds\n", rounds);
}
