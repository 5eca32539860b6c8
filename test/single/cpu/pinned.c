/* Two threads compute, each on a CPU of its own. */
#include "burners.h"
static void *pinned(void *seconds)
{
    static _Atomic int next;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(next++ % 2, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        exit(77);
    return burn(seconds);
}
int main(void)
{
    threads(2, pinned, 0.3);
    return 0;
}
