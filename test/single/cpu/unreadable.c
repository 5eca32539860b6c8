/*
 * Sets signal stacks from memory of which a part or all cannot be read. Prints each result and
 * errno.
 */
#include "../../prog/program.h"
static char room[65536];
int main(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t good = {.ss_sp = room, .ss_size = sizeof room};
    char *end = pages + 4096;
    const void *stacks[] = {(void *)8, end, end - sizeof good + 8, end - 8, (void *)-8, &good};
    munmap(end, 4096);
    for (unsigned i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        errno = 0;
        int r = sigaltstack(stacks[i], NULL);
        printf("%d %d\n", r, errno);
    }
    while (clock() < CLOCKS_PER_SEC / 2)
        ;
    return 0;
}
