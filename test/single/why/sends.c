/*
 * A sender thinks for 5 ms, then sends 40,000 bytes in one call, at 4,000,000 bytes a second. A
 * receiver waits for the first half of them, which has come while the sender is in the middle of
 * its call, and for the rest.
 */
#include <arpa/inet.h>

#include "../../prog/program.h"
enum { ROUNDS = 20, HALF = 20000, THINKS_US = 5000 };
static int ends[2];
static char sent[2 * HALF], received[HALF];
static void *send_all(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        usleep(THINKS_US + i * 31337 % 3000);
        if (send(ends[0], sent, sizeof sent, 0) != sizeof sent)
            exit(1);
    }
    return arg;
}
static void receive_half(void)
{
    if (recv(ends[1], received, HALF, MSG_WAITALL) != HALF)
        exit(1);
}
static void receive_rest(void)
{
    if (recv(ends[1], received, HALF, MSG_WAITALL) != HALF)
        exit(1);
}
static void *receive_all(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        receive_half();
        receive_rest();
    }
    return arg;
}
int main(void)
{
    pthread_t thread[2];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    unsigned rate = 4000000;
    struct sockaddr_in it = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof it;
    bind(listener, (void *)&it, size);
    listen(listener, 1);
    getsockname(listener, (void *)&it, &size);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(ends[0], SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
    int small = 16384;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    connect(ends[0], (void *)&it, size);
    ends[1] = accept(listener, NULL, NULL);
    pthread_create(&thread[0], NULL, send_all, NULL);
    pthread_create(&thread[1], NULL, receive_all, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
