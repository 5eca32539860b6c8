/* So many logs; none, as EMPTY. */
#include "../../../preload/gotrace.h"
#include <stdlib.h>
int main(int n, char **v)
{
    for (int i = atoi(v[n - 1]); i; i--) {
        __asm__ volatile("" ::: "memory");
#ifndef EMPTY
        gotrace_log(0, "c", "m");
#endif
    }
    return 0;
}
