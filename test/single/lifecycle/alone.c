/* Some 20,000 naps, in which several buffers fill. Prints the most threads that the process had. */
#include "../../prog/program.h"

int main(void)
{
    struct stat tasks;
    unsigned long most = 0;
    for (int i = 0; i < 20000; i++) {
        nanosleep(&(struct timespec){0, 1000}, NULL);
        stat("/proc/self/task", &tasks);
        most = tasks.st_nlink - 2 > most ? tasks.st_nlink - 2 : most;
    }
    printf("%lu\n", most);
    return 0;
}
