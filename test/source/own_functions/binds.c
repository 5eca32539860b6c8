/* A library that has, and calls, a function with the name of one of libc's, for another purpose. */
#include <stdlib.h>

int bind(int key, int action)
{
    return key == 3 && action == 5 ? 0 : 1;
}

static __attribute__((constructor)) void bind_keys(void)
{
    if (bind(3, 5))
        abort();
}
