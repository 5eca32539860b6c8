/*
 * Closes its standard error and goes on until its standard input ends: says so first, or forks. Or
 * says at its end which descriptors it then gets.
 */
#include "../../prog/program.h"

static char c;

static void *nothing(void *arg)
{
    return arg;
}

static void at_end(void)
{
    fclose(stderr);
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
    printf("%d %d\n", first, second);
}

int main(int argc, char **argv)
{
    (void)argc;
    pthread_t t;
    if (strstr(argv[1], "threads"))
        pthread_create(&t, NULL, nothing, NULL), pthread_join(t, NULL);
    if (strstr(argv[1], "few"))
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){16, 16});
    if (strstr(argv[1], "end"))
        return atexit(at_end);
    fclose(stderr);
    if (strstr(argv[1], "forks") && fork() == 0)
        while (read(0, &c, 1) == 1)
            ;
    puts("closed");
    fflush(stdout);
    while (read(0, &c, 1) == 1)
        ;
    return 0;
}
