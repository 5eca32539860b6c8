/* Two threads compute, each on a CPU of its own. */
#include "burners.h"
static void *pinned(void *seconds)
{
    static _Atomic int next;
    if (stay_on(next++ % 2))
        exit(77);
    return burn(seconds);
}
int main(void)
{
    threads(2, pinned, 0.3);
    return 0;
}
