/*
 * A library whose constructor sets a signal stack that is too small for a sample, and which knows
 * whether it was used.
 */
#include "../../prog/program.h"
static struct {
    char below[4096], stack[2048];
} memory;
__attribute__((constructor)) static void set(void)
{
    memset(&memory, 0x5a, sizeof memory);
    sigaltstack(&(stack_t){.ss_sp = memory.stack, .ss_size = sizeof memory.stack}, NULL);
}
int untouched(void)
{
    for (unsigned long i = 0; i < sizeof memory; i++)
        if (((char *)&memory)[i] != 0x5a)
            return 0;
    return 1;
}
