/*
 * Two threads fill buffers, the third computes far down its stack. From a byte of standard input
 * on to its end, the process gets no more memory: where nothing can be written, samples have no
 * room.
 */
#include "../../prog/program.h"

static _Atomic int done;

static void *nap(void *arg)
{
    while (!done)
        usleep(1);
    return arg;
}

__attribute__((noipa)) static int compute(int depth)
{
    while (!depth && !done)
        ;
    return depth ? compute(depth - 1) + 1 : 0;
}

static void *descend(void *arg)
{
    return compute(120) ? arg : NULL;
}

int main(void)
{
    struct rlimit memory;
    unsigned long pages;
    char c;
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, i ? nap : descend, NULL);
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || read(0, &c, 1) != 1 || fscanf(f, "%lu", &pages) != 1 ||
        getrlimit(RLIMIT_AS, &memory) != 0)
        return 1;
    setrlimit(RLIMIT_AS, &(struct rlimit){pages * 4096, memory.rlim_max});
    while (read(0, &c, 1) > 0)
        ;
    setrlimit(RLIMIT_AS, &memory);
    done = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
