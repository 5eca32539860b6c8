/* Preloaded to the command: a file that has just been mapped becomes shorter. */
#include "../../prog/program.h"
int madvise(void *at, size_t size, int advice)
{
    (void)at, (void)size, (void)advice;
    return truncate(getenv("SHRINKS"), 4096);
}
