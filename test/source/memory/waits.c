/* A library that waits for a second in outer. */
#include "../../prog/program.h"
static sem_t never;
void outer(void)
{
    sem_timedwait(&never, &(struct timespec){1, 0});
    __asm__ volatile("");
}
