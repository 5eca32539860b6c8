/*
 * Workers that share tokens in a pipe, as make's jobserver does: jobserver one|two [half|more]
 * [processes].
 *
 * one: 3 workers share one token. two: 5 workers share two. A worker scans for 1 ms, takes a token,
 * compiles for 6 ms with it, and gives it back, 15 times. half: compiling takes half as long. more:
 * there is one token more. The workers are threads, or processes.
 *
 * Prints how long that took, in ns.
 */
#include "../../prog/program.h"
#include <sys/wait.h>
enum { TIMES = 15, SCAN_US = 1000, COMPILE_US = 6000 };
static useconds_t compile_us = COMPILE_US;
static int pipe_of[2];
static __attribute__((noinline)) void scan_file(void)
{
    usleep(SCAN_US);
}
static __attribute__((noinline)) void compile_file(void)
{
    usleep(compile_us);
}
static __attribute__((noinline)) void take_token(void)
{
    char token;
    if (read(pipe_of[0], &token, 1) != 1)
        _exit(1);
}
static __attribute__((noinline)) void give_token(void)
{
    if (write(pipe_of[1], "+", 1) != 1)
        _exit(1);
}
static void *worker(void *arg)
{
    for (int i = 0; i < TIMES; i++) {
        scan_file();
        take_token();
        compile_file();
        give_token();
    }
    return arg;
}
static void run_threads(int n)
{
    pthread_t thread[8];
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, worker, NULL);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}
static void run_processes(int n)
{
    for (int i = 0; i < n; i++) {
        if (fork() == 0) {
            worker(NULL);
            exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}
static bool has(int argc, char **argv, const char *word)
{
    bool found = false;
    for (int i = 1; i < argc; i++)
        found |= strcmp(argv[i], word) == 0;
    return found;
}
int main(int argc, char **argv)
{
    bool one = has(argc, argv, "one");
    int workers = one ? 3 : 5, tokens = (one ? 1 : 2) + has(argc, argv, "more");
    compile_us = has(argc, argv, "half") ? COMPILE_US / 2 : COMPILE_US;
    if (pipe(pipe_of) != 0)
        return 1;
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < tokens; i++)
        give_token();
    (has(argc, argv, "processes") ? run_processes : run_threads)(workers);
    printf("%llu\n", (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - begin));
    return 0;
}
