/*
 * Forty threads, one after the other, compute below large frames. Prints the size of all rings of
 * perf events in KiB.
 */
#include "../../single/cpu/burners.h"
static pthread_barrier_t done, end;
static void *deep(void *depth)
{
    volatile char room[2048];
    memset((char *)room, 1, sizeof room);
    if ((long)depth < 40) {
        deep((void *)((long)depth + 1));
        return room[1] ? depth : NULL;
    }
    spin(0.06);
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&end);
    return depth;
}
int main(void)
{
    long total = 0, kb;
    char line[512];
    pthread_barrier_init(&done, NULL, 2);
    pthread_barrier_init(&end, NULL, 41);
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, deep, NULL);
        pthread_barrier_wait(&done);
    }
    usleep(100000);
    FILE *maps = fopen("/proc/self/smaps", "r");
    for (int ring = 0; fgets(line, sizeof line, maps);) {
        ring |= strstr(line, "perf_event") != NULL;
        if (ring && sscanf(line, "Size: %ld", &kb) == 1) {
            total += kb;
            ring = 0;
        }
    }
    printf("%ld\n", total);
    pthread_barrier_wait(&end);
    return 0;
}
