/* Many threads, a tenth of them at a time, that fight for a lock: crowd THREADS. */
#include "../../prog/program.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int all = argc > 1 ? atoi(argv[1]) : 0, some = all / 10;
    pthread_t *thread = calloc((size_t)some, sizeof *thread);
    for (int done = 0; done < all; done += some) {
        RUN_THREADS(some, work, NULL);
    }
    free(thread);
    return 0;
}
