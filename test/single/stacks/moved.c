/* Moves its own code into anonymous memory, as programs do for large pages, says so and waits. */
#include "../../prog/program.h"

int main(void);

static bool move_code(void)
{
    char line[512];
    unsigned long from = 0, to = 0, here = (unsigned long)(uintptr_t)main;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !(from <= here && here < to) && fgets(line, sizeof line, maps))
        sscanf(line, "%lx-%lx", &from, &to);
    void *code = (void *)from;
    size_t n = to - from;
    void *copy = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, code, n);
    mprotect(copy, n, PROT_READ | PROT_EXEC);
    return mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, code) == code;
}

__attribute__((noinline)) static void wait_in_moved_code(void)
{
    puts(move_code() ? "moved" : "not moved");
    fflush(stdout);
    getchar();
}

int main(void)
{
    wait_in_moved_code();
    return 0;
}
