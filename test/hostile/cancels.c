/* Threads that are cancelled anywhere (PTHREAD_CANCEL_ASYNCHRONOUS), while generations change. */
#include "../prog/program.h"

enum { ROUNDS = 150, THREADS = 4 };

static int zero;

static void *run(void *arg)
{
    char c;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    while (read(zero, &c, 1) == 1)
        ;
    return arg;
}

int main(void)
{
    char *none[] = {"none", NULL};
    pthread_t thread[THREADS];
    zero = open("/dev/zero", O_RDONLY);
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec soon = {0, rand() % 300000};
        for (int i = 0; i < THREADS; i++)
            pthread_create(&thread[i], NULL, run, NULL);
        nanosleep(&soon, NULL);
        if (round % 3 == 0)
            execv("/nowhere", none); /* all earlier records are in the file first */
        for (int i = 0; i < THREADS; i++)
            pthread_cancel(thread[i]);
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
    }
    return 0;
}
