/* Three threads compute below 100 large frames. Prints how much CPU time they used. */
#include "../../single/cpu/burners.h"
static void *deep(void *seconds)
{
    volatile char room[2048];
    static __thread int depth;
    void *all;
    memset((char *)room, depth, sizeof room);
    all = ++depth < 100 ? deep(seconds) : burn(seconds);
    return room[1] ? all : all;
}
int main(void)
{
    printf("%f\n", threads(3, deep, 0.3));
    return 0;
}
