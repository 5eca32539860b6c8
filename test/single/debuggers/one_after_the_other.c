/*
 * Three threads, one after the other: with several that meet its breakpoints at once, ltrace
 * fails.
 */
#include "../../prog/program.h"

static void *work(void *name)
{
    usleep(20000);
    puts(name);
    return NULL;
}

int main(void)
{
    static char *const names[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++) {
        RUN_THREADS(1, work, names[i]);
    }
    return 0;
}
