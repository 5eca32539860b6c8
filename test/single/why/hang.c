/*
 * Hangs, and ends itself by a signal. loader holds `table` while it reads two bytes at a time from
 * a pipe, and worker wants `table`. feeder writes one byte too few and ends: loader reads for ever,
 * worker waits for loader, and main for both. feeder prints when it ends, in ns since main began.
 */
#include "../../prog/program.h"
enum { ROUNDS = 10, WRITE_US = 5000, HANGS_S = 2 };
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static int64_t began;
static void refill(void)
{
    char c;
    pthread_mutex_lock(&table);
    for (int i = 0; i < 2; i++)
        i += read(ends[0], &c, 1) != 1;
    pthread_mutex_unlock(&table);
}
static void use(void)
{
    pthread_mutex_lock(&table);
    usleep(100);
    pthread_mutex_unlock(&table);
}
static void *loader(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        refill();
        usleep(1000);
    }
    return arg;
}
static void *worker(void *arg)
{
    for (;;) {
        use();
        usleep(1000);
    }
    return arg;
}
static void *feeder(void *arg)
{
    for (int i = 0; i < 2 * ROUNDS - 1; i++) {
        usleep(WRITE_US);
        if (write(ends[1], "x", 1) != 1)
            return NULL;
    }
    usleep(10 * WRITE_US); /* the others have come to their last waits */
    printf("%jd\n", (intmax_t)(now_ns() - began));
    fflush(stdout);
    alarm(HANGS_S);
    return arg;
}
int main(void)
{
    began = now_ns();
    pthread_t l, w, f;
    if (pipe(ends))
        return 1;
    pthread_create(&l, NULL, loader, NULL);
    pthread_create(&f, NULL, feeder, NULL);
    pthread_create(&w, NULL, worker, NULL);
    pthread_join(l, NULL);
    pthread_join(w, NULL);
    pthread_join(f, NULL);
    return 0;
}
