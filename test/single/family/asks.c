/*
 * Two processes, one of which asks the other 150 questions through pipes, or sockets if there is
 * an argument. Prints for how many ns the other one worked.
 */
#include "../../prog/program.h"
static void answer(int asked, int told)
{
    char byte;
    uint64_t sum = 0;
    for (int i = 0; read(asked, &byte, 1) == 1; i++) {
        uint64_t start = now_ns();
        usleep(2000 + i * 7919 % 1500);
        sum += now_ns() - start;
        write(told, &byte, 1);
    }
    printf("%llu\n", (unsigned long long)sum);
}
int main(int argc, char **argv)
{
    (void)argv;
    int asks[2], tells[2];
    char byte = 0;
    if (argc > 1 ? socketpair(AF_UNIX, SOCK_STREAM, 0, asks) ||
                       socketpair(AF_UNIX, SOCK_STREAM, 0, tells)
                 : pipe(asks) || pipe(tells))
        return 1;
    if (fork() == 0) {
        close(asks[1]);
        answer(asks[0], tells[1]);
        return 0;
    }
    for (int i = 0; i < 150; i++) {
        usleep(1000 + i * 31337 % 700);
        write(asks[1], &byte, 1);
        read(tells[0], &byte, 1);
    }
    close(asks[1]);
    wait(NULL);
    return 0;
}
