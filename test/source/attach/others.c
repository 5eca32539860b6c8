/*
 * Calls of OpenMP and libaio, until standard input ends. Prints how many rounds there were, after
 * each byte of standard input and at the end.
 */
#include <omp.h>

#include "../../prog/program.h"

int io_setup(int, void **);
int io_getevents(void *, long, long, void *, struct timespec *);
static void *context;

static void critical(void)
{
#pragma omp critical
    usleep(20000);
}

static void await_io(void)
{
    char event[64];
    struct timespec time = {.tv_nsec = 20000000};
    io_getevents(context, 1, 1, event, &time);
}

int main(void)
{
    int rounds = 0;
    char asked;
    puts(io_setup(1, &context) ? "no aio" : "ready");
    fflush(stdout);
    for (;; rounds++) {
        if (poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, 0) != 0) {
            if (read(0, &asked, 1) != 1)
                break;
            printf("%d rounds\n", rounds);
            fflush(stdout);
        }
#pragma omp parallel num_threads(3)
        {
            critical();
#pragma omp barrier
            if (omp_get_thread_num() == 0)
                await_io();
        }
    }
    printf("%d rounds\n", rounds);
}
