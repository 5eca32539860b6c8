/*
 * Makes 2,000 connections and accepts them, a hundred at a time, and then binds a datagram socket.
 * Prints how long the connections took, in milliseconds.
 */
#include "../../prog/program.h"

#include <sys/un.h>

enum { ROUNDS = 20, MANY = 100 };

int main(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), end[2][MANY];
    snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "gotrace-connections-%d", getpid());
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, MANY))
        abort();
    long begin = now_ns();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            end[0][i] = socket(AF_UNIX, SOCK_STREAM, 0);
            if (connect(end[0][i], (struct sockaddr *)&at, sizeof at))
                abort();
        }
        for (int i = 0; i < MANY; i++) {
            if ((end[1][i] = accept(listener, NULL, NULL)) < 0)
                abort();
        }
        for (int i = 0; i < MANY; i++)
            close(end[0][i]), close(end[1][i]);
    }
    long ms = (now_ns() - begin) / 1000000;
    at.sun_path[1]++;
    if (bind(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *)&at, sizeof at))
        abort();
    printf("%ld\n", ms);
    return 0;
}
