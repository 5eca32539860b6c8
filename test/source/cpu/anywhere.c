/*
 * Computes in short functions, libc and the vDSO, so that samples hit prologues, epilogues and the
 * PLT.
 */
#include "../../prog/program.h"
static volatile int sink;
__attribute__((noinline)) static int leaf(int n)
{
    char room[64];
    memset(room, n, sizeof room);
    return room[n & 63];
}
__attribute__((noinline)) static int deep(int n)
{
    return n ? deep(n - 1) + leaf(n) : abs(sink);
}
__attribute__((noinline)) static void other(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    free(malloc((size_t)(t.tv_nsec & 255)));
    sink += (int)strlen(getenv("PATH"));
}
int main(void)
{
    for (int i = 0; i < 300000; i++) {
        sink += deep(10);
        other();
    }
    return 0;
}
