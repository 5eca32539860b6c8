/*
 * late [unended]: a thread waits for a mutex 200 ms before the recording begins, and 100 ms longer;
 * or until the program ends. Prints an upper bound of the seconds that it waited in the recording.
 */
#include "../../prog/program.h"
#include "../../../preload/gotrace.h"

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *commit(void *arg)
{
    pthread_mutex_lock(&journal);
    pthread_mutex_unlock(&journal);
    return arg;
}

int main(int argc, char **argv)
{
    bool ends = argc == 1 || strcmp(argv[1], "unended") != 0;
    pthread_t thread;
    pthread_mutex_lock(&journal);
    pthread_create(&thread, NULL, commit, NULL);
    usleep(200000);
    uint64_t before = now_ns();
    gotrace_start();
    usleep(100000);
    if (ends) {
        pthread_mutex_unlock(&journal);
        pthread_join(thread, NULL);
    } else {
        gotrace_stop();
    }
    printf("%.3f\n", (double)(now_ns() - before) / 1e9 + 0.001);
    return 0;
}
