/* A program with an allocator of its own. */
#include <stdio.h>
#include "own_malloc.h"
int main(void)
{
    char *p = strdup("mine"), *q = realloc(calloc(3, 5), 100000);
    printf("%d %d\n", p > heap && p < heap + sizeof heap, q != NULL);
    free(q);
    free(p);
    puts("end 0");
    return 0;
}
