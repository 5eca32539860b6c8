/*
 * Pairs of threads that wake each other through pipes as fast as they can. Prints the number of
 * context switches.
 */
#include "../../prog/program.h"
#define PAIRS 3
static struct pair {
    int there[2], back[2];
} pair[PAIRS];
static void *answer(void *arg)
{
    struct pair *p = arg;
    char c;
    while (read(p->there[0], &c, 1) == 1 && write(p->back[1], &c, 1) == 1)
        ;
    return arg;
}
static void *ask(void *arg)
{
    struct pair *p = arg;
    char c = 0;
    usleep(50000);
    for (int i = 0; i < 100000; i++)
        if (write(p->there[1], &c, 1) != 1 || read(p->back[0], &c, 1) != 1)
            abort();
    close(p->there[1]);
    return arg;
}
int main(int argc, char **argv)
{
    (void)argc;
    pthread_t t[2 * PAIRS];
    struct rusage used;
    int n = atoi(argv[1]);
    for (int i = 0; i < n; i++) {
        if (pipe(pair[i].there) != 0 || pipe(pair[i].back) != 0)
            return 1;
        pthread_create(&t[2 * i], 0, ask, &pair[i]);
        pthread_create(&t[2 * i + 1], 0, answer, &pair[i]);
    }
    for (int i = 0; i < 2 * n; i++)
        pthread_join(t[i], 0);
    getrusage(RUSAGE_SELF, &used);
    printf("%ld\n", used.ru_nvcsw);
    return 0;
}
