/*
 * Threads that wait for locks inside libc: of malloc's arenas, of a FILE, of the loader. `inside
 * MODE` prints how long its threads lived in all, how much of that they were on a CPU, in ms, and
 * how often they gave the CPU up to wait.
 */
#include "../../prog/program.h"
#include <link.h>
#include <malloc.h>

enum { THREADS = 4, MS = 1000000 };

static _Atomic uint64_t lived, used, waits;
static FILE *file;
static const char *mode;

/* Counts how often the thread has waited. Whether it has more rounds: at least so many, and more
 * until all have waited often. */
static bool goes_on(int round, int rounds, uint64_t least)
{
    static _Thread_local uint64_t counted;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    waits += (uint64_t)usage.ru_nvcsw - counted;
    counted = (uint64_t)usage.ru_nvcsw;
    return round < rounds || (round < 100 * rounds && waits < least);
}

__attribute__((noinline)) static void use_malloc(void)
{
    enum { BLOCKS = 64 };
    char *block[BLOCKS];
    for (int i = 0; goes_on(i, 4000, 1000); i++) {
        for (int k = 0; k < BLOCKS; k++) {
            block[k] = malloc(2000u + 64u * (unsigned)k);
            block[k][0] = 1;
        }
        for (int k = BLOCKS; k--;)
            free(block[k]);
    }
}

__attribute__((noinline)) static void use_file(void)
{
    for (int i = 0; i < 300000; i++)
        fprintf(file, "%d\n", i);
}

static int see(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)info;
    (void)size;
    (void)arg;
    nanosleep(&(struct timespec){0, MS / 4}, NULL);
    return 0;
}

__attribute__((noinline)) static void use_loader(void)
{
    for (int i = 0; goes_on(i, 20, 100); i++)
        dl_iterate_phdr(see, NULL);
}

static void *work(void *arg)
{
    uint64_t at = now_ns();
    if (strcmp(mode, "malloc") == 0)
        use_malloc();
    else if (strcmp(mode, "file") == 0)
        use_file();
    else
        use_loader();
    lived += now_ns() - at;
    used += cpu_ns();
    return arg;
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "malloc";
    mallopt(M_ARENA_MAX, 1);
    file = fopen("/dev/null", "w");
    RUN_THREADS(THREADS, work, NULL);
    printf("%.1f %.1f %llu\n", (double)lived / MS, (double)used / MS, (unsigned long long)waits);
    return 0;
}
