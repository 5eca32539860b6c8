/* malloc_free SIZE: nanoseconds of a free and a malloc of that size, the best of 15 times a
 * million. */
#include "program.h"
int main(int c, char **v)
{
    size_t n = c > 1 ? atol(v[1]) : 64;
    void *volatile ring[64] = {0};
    double best = 1e9;
    for (int r = 0; r < 15; r++) {
        double t = now_ns();
        for (int i = 0; i < 1000000; i++) {
            free(ring[i & 63]);
            ring[i & 63] = malloc(n);
        }
        t = (now_ns() - t) / 1e6;
        if (t < best)
            best = t;
    }
    printf("%.2f\n", best);
    return 0;
}
