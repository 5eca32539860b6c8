/*
 * Computes, and sets a signal stack of so many bytes (first argument) so often (second). Prints
 * whether it was refused, and the CPU time.
 */
#include "../../prog/program.h"
static char room[65536];
static volatile long sink;
int main(int argc, char **argv)
{
    stack_t stack = {.ss_sp = room, .ss_size = atoi(argv[1])};
    int refused = 0, left = atoi(argv[2]);
    while (clock() < CLOCKS_PER_SEC / 2) {
        if (left-- > 0)
            refused = sigaltstack(&stack, NULL) != 0;
        for (int i = 0; i < 10000; i++)
            sink += i;
    }
    printf("%d %ld\n", refused, clock());
    return argc - 3;
}
