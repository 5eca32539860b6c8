/* Becomes itself as often as its first argument says, with a thread if there is a second one. */
#include "../../prog/program.h"
static void *nothing(void *arg)
{
    return arg;
}
int main(int argc, char **argv)
{
    int left = atoi(argv[1]);
    char next[16];
    pthread_t thread;
    if (argc > 2 && pthread_create(&thread, NULL, nothing, NULL) == 0)
        pthread_join(thread, NULL);
    usleep(10000);
    snprintf(next, sizeof next, "%d", left - 1);
    return left ? execl(argv[0], argv[0], next, argv[2], NULL) : 3;
}
