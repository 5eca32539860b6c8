/* A thread copies the FIFO to which the program's own trace goes, argv[1], to standard output. */
#include "../../prog/program.h"

enum { PAGE = 4096, EVENTS = 1000 };

static sem_t begun;

static void *copy(void *path)
{
    int fifo = open(path, O_RDWR);
    if (fcntl(fifo, F_SETPIPE_SZ, PAGE) < 0) /* the trace's end has no room there */
        exit(1);
    sem_post(&begun);
    while (splice(fifo, NULL, STDOUT_FILENO, NULL, PAGE, 0) > 0)
        ; /* it has nothing in hand when the process ends */
    exit(1);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 2 || sem_init(&begun, 0, 0) || pthread_create(&thread, NULL, copy, argv[1]))
        return 1;
    sem_wait(&begun);
    for (int i = 0; i < EVENTS; i++)
        close(-1);
    return 0;
}
