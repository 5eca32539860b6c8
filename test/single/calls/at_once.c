/*
 * Calls that return at once, some later than the shortest wait to be recorded, and two real waits
 * of 20 ms.
 */
#include "../../prog/program.h"
#define MANY 500
static void *work(void *arg)
{
    static struct pollfd fds[MANY];
    struct epoll_event event;
    char c;
    int s[2], e = epoll_create1(0), longer = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
        abort();
    for (int i = 0; i < MANY; i++)
        fds[i] = (struct pollfd){.fd = s[0], .events = POLLIN};
    for (int i = 0; i < 100; i++) { /* 10 of those longer than the minimum, at least */
        long begin = now_ns();
        if (poll(fds, MANY, 0) != 0 || epoll_wait(e, &event, 1, 0) != 0 ||
            recv(s[0], &c, 1, MSG_DONTWAIT) != -1 || send(s[1], "", 1, MSG_DONTWAIT) != 1 ||
            recv(s[0], &c, 1, MSG_DONTWAIT) != 1)
            abort();
        longer += now_ns() - begin > 5000;
    }
    if (longer < 10 || poll(fds, 1, 20) != 0 || epoll_wait(e, &event, 1, 20) != 0)
        abort();
    return arg;
}
int main(void)
{
    pthread_t t;
    pthread_create(&t, 0, work, 0);
    return pthread_join(t, 0);
}
