/*
 * A thread reads 40 bytes, one each 10 ms, as another process writes them, which is not
 * recorded. A second thread gets its bytes from there 3 ms before. A third one sleeps for 300 ms.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
enum { BYTES = 40, BEFORE_US = 3000, AFTER_US = 7000, NAP_US = 300000 };
static int table[2], early[2];
static void refill_table(void)
{
    char byte;
    if (read(table[0], &byte, 1) != 1)
        exit(1);
}
static void *load(void *arg)
{
    for (int i = 0; i < BYTES; i++)
        refill_table();
    return arg;
}
static void *load_early(void *arg)
{
    char byte;
    for (int i = 0; i < BYTES; i++) {
        if (read(early[0], &byte, 1) != 1)
            exit(1);
    }
    return arg;
}
static void *nap(void *arg)
{
    usleep(NAP_US);
    return arg;
}
static void feed(void)
{
    for (int i = 0; i < BYTES; i++) {
        usleep(AFTER_US);
        if (write(early[1], "x", 1) != 1)
            _exit(1);
        usleep(BEFORE_US);
        if (write(table[1], "x", 1) != 1)
            _exit(1);
    }
    _exit(0);
}
int main(void)
{
    void *(*const routine[])(void *) = {load, load_early, nap};
    pthread_t thread[3];
    if (pipe(table) || pipe(early))
        return 1;
    pid_t feeder = fork();
    if (!feeder)
        feed();
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, routine[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    return waitpid(feeder, NULL, 0) != feeder;
}
