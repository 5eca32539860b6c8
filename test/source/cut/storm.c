/* Bursts of regions, one every 2 ms: more events than the viewer can show. */
#include "../../../preload/gotrace.h"
#include <time.h>
int main(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int burst = 0; burst < 1500; burst++) {
        for (int i = 0; i < 500; i++)
            gotrace_region_end(gotrace_region_begin(0, "storm"));
        do // nothing that has a state of its own
            clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
               2 * burst);
    }
    return 0;
}
