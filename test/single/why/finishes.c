/*
 * Programs whose threads wait for input nearly all the time: finishes MODE. All but `served` come
 * to an end by themselves.
 *
 *   limits  4 threads ask a name server that is dead, for 60 ms, and then one that answers
 *   beside  4 threads ask a server, which is a thread of the program, and main joins them all
 *   backlog so they do, but hardly any connection may wait for the server: connect tries again
 *   served  2 threads, joined from the start, answer a child process until it hangs up
 *
 * But served: prints for how many ms a thread waited for answers, on average.
 */
#include <arpa/inet.h>

#include "../../prog/program.h"

enum { CLIENTS = 4, SERVERS = 2, NAMES = 8, QUESTIONS = 12, LIMIT_MS = 60, WORK_US = 5000 };
static struct sockaddr_in dead, live;
static long long waited_ns;

static int bind_to(struct sockaddr_in *address, int type)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, type, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (void *)address, length) || getsockname(fd, (void *)address, &length))
        _exit(1);
    return fd;
}

/* A dead name server and a live one ------------------------------------------------------------ */

static void *name_server(void *arg)
{
    char name[16];
    struct sockaddr_in from;
    for (socklen_t length = sizeof from;
         recvfrom((int)(intptr_t)arg, name, sizeof name, 0, (void *)&from, &length) > 1;) {
        usleep(WORK_US / 10);
        sendto((int)(intptr_t)arg, name, 2, 0, (void *)&from, length);
    }
    return arg;
}

static __attribute__((noinline)) int ask(int fd, const struct sockaddr_in *server)
{
    char name[16];
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (sendto(fd, "ab", 2, 0, (const void *)server, sizeof *server) != 2)
        _exit(1);
    return poll(&answer, 1, LIMIT_MS) == 1 && recv(fd, name, sizeof name, 0) == 2;
}

static void *look_up_names(void *arg)
{
    for (int i = 0; i < NAMES; i++) {
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        long long since = now_ns();
        if (ask(fd, &dead) || !ask(fd, &live))
            _exit(1);
        __atomic_fetch_add(&waited_ns, now_ns() - since, __ATOMIC_RELAXED);
        close(fd);
        usleep(WORK_US);
    }
    return arg;
}

static void limits(void)
{
    pthread_t server;
    int silent = bind_to(&dead, SOCK_DGRAM), fd = bind_to(&live, SOCK_DGRAM);
    pthread_create(&server, NULL, name_server, (void *)(intptr_t)fd);
    RUN_THREADS(CLIENTS, look_up_names, NULL);
    sendto(silent, "x", 1, 0, (void *)&live, sizeof live);
    pthread_join(server, NULL);
}

/* A server beside its clients ------------------------------------------------------------------ */

static void *shop(void *arg)
{
    char byte;
    for (int i = 0; i < CLIENTS * QUESTIONS; i++) {
        int fd = accept((int)(intptr_t)arg, NULL, NULL);
        if (read(fd, &byte, 1) != 1)
            _exit(1);
        usleep(WORK_US);
        if (write(fd, &byte, 1) != 1)
            _exit(1);
        close(fd);
    }
    return arg;
}

static __attribute__((noinline)) void buy(void)
{
    char byte = 'x';
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (void *)&live, sizeof live) || write(fd, &byte, 1) != 1 ||
        read(fd, &byte, 1) != 1)
        _exit(1);
    close(fd);
}

static void *buyer(void *arg)
{
    for (int i = 0; i < QUESTIONS; i++) {
        long long since = now_ns();
        buy();
        __atomic_fetch_add(&waited_ns, now_ns() - since, __ATOMIC_RELAXED);
        usleep(WORK_US / 5);
    }
    return arg;
}

static void beside(int backlog)
{
    pthread_t server;
    int fd = bind_to(&live, SOCK_STREAM);
    listen(fd, backlog);
    pthread_create(&server, NULL, shop, (void *)(intptr_t)fd);
    RUN_THREADS(CLIENTS, buyer, NULL);
    pthread_join(server, NULL);
}

/* Workers that answer until their client hangs up ---------------------------------------------- */

static void *answer(void *arg)
{
    char byte;
    while (read((int)(intptr_t)arg, &byte, 1) == 1 && write((int)(intptr_t)arg, &byte, 1) == 1)
        usleep(WORK_US / 10);
    return arg;
}

static void ask_all(int (*pair)[2])
{
    char byte = 'x';
    for (int i = 0; i < SERVERS; i++)
        close(pair[i][0]);
    for (int i = 0; i < 40; i++) {
        usleep(WORK_US);
        if (write(pair[i % SERVERS][1], &byte, 1) != 1 || read(pair[i % SERVERS][1], &byte, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static void served(void)
{
    int pair[SERVERS][2], status;
    pthread_t server[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[i]))
            _exit(1);
    }
    pid_t child = fork();
    if (!child)
        ask_all(pair);
    for (int i = 0; i < SERVERS; i++) {
        close(pair[i][1]);
        pthread_create(&server[i], NULL, answer, (void *)(intptr_t)pair[i][0]);
    }
    for (int i = 0; i < SERVERS; i++)
        pthread_join(server[i], NULL);
    waitpid(child, &status, 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    if (!strcmp(argv[1], "limits"))
        limits();
    else if (!strcmp(argv[1], "beside"))
        beside(2 * CLIENTS);
    else if (!strcmp(argv[1], "backlog"))
        beside(0);
    else
        served();
    printf("%.3f\n", (double)waited_ns / CLIENTS / 1e6);
    return 0;
}
