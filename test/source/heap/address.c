/*
 * Takes the addresses of malloc and free, as programs without PIE do by entries in their symbol
 * table.
 */
#include "../../prog/program.h"
void *(*volatile take)(size_t) = malloc;
void (*volatile give)(void *) = free;
static char buffer[512];
int main(void)
{
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    give(take(100));
    take(24);
    puts("end 24");
    return 0;
}
