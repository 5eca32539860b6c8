/*
 * A thread has a CPU for half a second, most of it in the kernel:
 *   calls   in short writes, a dozen after each bit of computing
 *   pages   in page faults, of a buffer that it maps and unmaps again and again
 *   forks   in forks of this process, which has 300 MB
 *   none    computes only
 * Prints its CPU time, the part in the named calls, its system time (all in ms), its page faults,
 * and how often it made the call.
 */
#include "../../prog/program.h"

#define CALLED __attribute__((noinline)) static void
enum { WRITES = 12, BUFFER = 2 << 20, HEAP = 300 << 20, LONG_NS = 500000000 };

static const char *mode;
static long in_calls, times;
static FILE *file;

CALLED compute(int rounds)
{
    for (volatile int i = 0; i < rounds; i++)
        ;
}

CALLED store(void)
{
    static char text[2048];
    for (int i = 0; i < WRITES; i++, times++) {
        if (pwrite(fileno(file), text, sizeof text, 0) != sizeof text)
            abort();
    }
}

CALLED touch(void)
{
    char *buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED)
        abort();
    madvise(buffer, BUFFER, MADV_NOHUGEPAGE);
    for (int i = 0; i < BUFFER; i += 4096)
        buffer[i] = 1;
    munmap(buffer, BUFFER);
    times++;
}

CALLED run_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        abort();
    times++;
}

static void *work(void *arg)
{
    void (*call)(void) = *mode == 'c'   ? store
                         : *mode == 'p' ? touch
                         : *mode == 'f' ? run_child
                                        : NULL;
    for (long from = cpu_ns(), at; (at = cpu_ns()) < from + LONG_NS;) {
        if (call)
            call();
        in_calls += call ? cpu_ns() - at : 0;
        compute(call ? 1000 : 100000);
    }
    return arg;
}

static void *live(void *arg)
{
    struct rusage usage;
    work(arg);
    getrusage(RUSAGE_THREAD, &usage);
    printf("%ld %ld %ld %ld %ld\n", cpu_ns() / 1000000, in_calls / 1000000,
           usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000, usage.ru_minflt, times);
    return arg;
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "none";
    file = tmpfile();
    if (!file)
        abort();
    if (*mode == 'f') {
        char *heap = mmap(NULL, HEAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (heap == MAP_FAILED)
            abort();
        madvise(heap, HEAP, MADV_NOHUGEPAGE);
        memset(heap, 1, HEAP);
    }
    RUN_THREADS(1, live, NULL);
    return 0;
}
