/* Computes on a stack for signals that is above that of the thread. */
#include "burners.h"
#include <sys/mman.h>
static void *above;
static void handler(int number)
{
    (void)number;
    spin(0.4);
}
static void *raises(void *seconds)
{
    stack_t stack = {.ss_sp = above, .ss_size = 65536};
    double before = cpu();
    if (sigaltstack(&stack, NULL))
        abort();
    spin(*(double *)seconds);
    raise(SIGUSR1);
    return sum(before);
}
int main(void)
{
    above = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mmap(NULL, 256 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK}, NULL);
    printf("%f\n", threads(1, raises, 0.1));
    return 0;
}
