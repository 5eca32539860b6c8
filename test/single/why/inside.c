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

__attribute__((noinline)) static void use_malloc(void)
{
    enum { BLOCKS = 64 };
    char *block[BLOCKS];
    for (int i = 0; i < 4000; i++) {
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
    for (int i = 0; i < 20; i++)
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
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    lived += now_ns() - at;
    used += cpu_ns();
    waits += (uint64_t)usage.ru_nvcsw;
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
