/*
 * A pipe that is full, as a child process reads it slowly: backed_up MODE.
 *
 *   blocks  a thread makes a block and writes it, again and again
 *   half    so it does, and makes the blocks in half the time
 *   lines   4 threads write lines between pieces of work, which the child reads more slowly
 *
 * Prints how long it took, in ms.
 */
#include "../../prog/program.h"

enum { BLOCK = 32768, BLOCKS = 120, MAKE_US = 1000, READ_US = 3000, SLOW_US = 32768 };
enum { WRITERS = 4, PIECES = 40, LINES = 12, LINE = 250, WORK_US = 3000 };
static int to_child[2];
static useconds_t make_us = MAKE_US, read_us = READ_US; /* of a block */
static FILE *out;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void read_slowly(void)
{
    static char part[BLOCK / 16];
    close(to_child[1]);
    for (ssize_t n; (n = read(to_child[0], part, sizeof part)) > 0;)
        usleep((useconds_t)((size_t)n * read_us / BLOCK));
    _exit(0);
}

static __attribute__((noinline)) void make_block(void)
{
    usleep(make_us);
    __asm__ volatile("");
}

static void *make_blocks(void *arg)
{
    static char block[BLOCK];
    for (int i = 0; i < BLOCKS; i++) {
        make_block();
        for (ssize_t n, done = 0; done < BLOCK; done += n) {
            if ((n = write(to_child[1], block + done, (size_t)(BLOCK - done))) <= 0)
                _exit(1);
        }
    }
    return arg;
}

static __attribute__((noinline)) void write_line(int i)
{
    fprintf(out, "%*d\n", LINE - 1, i);
    fflush(out);
}

static __attribute__((noinline)) void do_work(void)
{
    usleep(WORK_US);
    __asm__ volatile("");
}

static void *write_lines(void *arg)
{
    for (int i = 0; i < PIECES; i++) {
        for (int k = 0; k < LINES; k++)
            write_line(k);
        do_work();
        write_line(i);
    }
    return arg;
}

int main(int argc, char **argv)
{
    double begin = now_ms();
    bool lines = argc > 1 && !strcmp(argv[1], "lines");
    int threads = lines ? WRITERS : 1;
    make_us = argc > 1 && !strcmp(argv[1], "half") ? MAKE_US / 2 : MAKE_US;
    read_us = lines ? SLOW_US : READ_US;
    if (pipe(to_child))
        return 1;
    pid_t child = fork();
    if (!child)
        read_slowly();
    close(to_child[0]);
    out = fdopen(to_child[1], "w");
    RUN_THREADS(threads, lines ? write_lines : make_blocks, NULL);
    fclose(out);
    waitpid(child, NULL, 0);
    printf("%.1f\n", now_ms() - begin);
    return 0;
}
