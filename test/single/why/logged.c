/*
 * Threads log to a pipe that a child process reads slowly: logged [half].
 *
 * The child takes 1 ms for each KiB. Of two workers, each logs 120 lines of 4 KiB with fprintf and
 * works 2 ms after each: the pipe is full nearly all the time. half: the child takes half as long.
 *
 * Prints how long that took, in ns.
 */
#include "../../prog/program.h"
enum { LINES = 120, LINE = 4096, WORK_US = 2000, KIB = 1024, KIB_US = 1000, WORKERS = 2 };
static FILE *out;
static long kib_us = KIB_US;
static __attribute__((noinline)) void store(void)
{
    usleep((useconds_t)kib_us);
    __asm__ volatile("");
}
static void read_log(int fd)
{
    char text[KIB];
    while (read(fd, text, sizeof text) > 0)
        store();
    _exit(0);
}
static void *worker(void *arg)
{
    for (int i = 0; i < LINES; i++) {
        fprintf(out, "%*d\n", LINE - 1, i);
        fflush(out);
        usleep(WORK_US);
    }
    return arg;
}
int main(int argc, char **argv)
{
    int fd[2];
    kib_us = argv[argc - 1][0] == 'h' ? KIB_US / 2 : KIB_US;
    if (pipe(fd))
        return 1;
    uint64_t begin = now_ns();
    pid_t child = fork();
    if (!child) {
        close(fd[1]);
        read_log(fd[0]);
    }
    close(fd[0]);
    out = fdopen(fd[1], "w");
    RUN_THREADS(WORKERS, worker, NULL);
    fclose(out);
    waitpid(child, NULL, 0);
    printf("%lu\n", now_ns() - begin);
    return 0;
}
