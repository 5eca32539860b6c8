/*
 * A thread that writes to a pipe, 20 times between two polls of 1 ms: room, or full.
 *
 * - room: it reads at once what it has written. No write blocks; each takes some 100 us of the CPU.
 * - full: another thread reads, and sleeps 300 us before each time. Most writes block.
 *
 * Prints for how many ns the process has lived, and its CPU time.
 */
#include "../../prog/program.h"

#include <inttypes.h>

enum { POLLS = 100, WRITES = 20, SIZE = 512 << 10 };

static int at[2];
static char data[SIZE], other[SIZE];

static void read_part(void)
{
    for (ssize_t n, got = 0; got < SIZE; got += n) {
        if ((n = read(at[0], other, (size_t)(SIZE - got))) <= 0)
            abort();
    }
}

static void *slow_reader(void *arg)
{
    for (int i = 0; i < POLLS * WRITES; i++) {
        nanosleep(&(struct timespec){0, 300000}, NULL);
        read_part();
    }
    return arg;
}

__attribute__((noinline)) static void write_part(void)
{
    if (write(at[1], data, SIZE) != SIZE)
        abort();
}

int main(int argc, char **argv)
{
    bool reads = argc > 1 && strcmp(argv[1], "room") == 0;
    uint64_t since = now_ns();
    pthread_t reader;
    if (pipe(at) != 0 || fcntl(at[1], F_SETPIPE_SZ, SIZE) < SIZE)
        abort();
    if (!reads && pthread_create(&reader, NULL, slow_reader, NULL) != 0)
        abort();
    for (int i = 0; i < POLLS; i++) {
        poll(NULL, 0, 1);
        for (int k = 0; k < WRITES; k++) {
            write_part();
            if (reads)
                read_part();
        }
    }
    if (!reads)
        pthread_join(reader, NULL);
    uint64_t lived = now_ns() - since, cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    printf("%" PRIu64 " %" PRIu64 "\n", lived, cpu);
    return 0;
}
