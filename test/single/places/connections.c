/*
 * A thread reads below ten functions. "serves": it reads requests from those who have connected to
 * the program, one connection after the other, and between them it waits for the next one. "asks":
 * it has connected to another process itself, and reads answers. "events": the first thread waits
 * for events of a pair of sockets a few functions below its loop, and reads them in the loop.
 * "ready": as "serves", but the first thread accepts only connections that are there. "relays": as
 * "serves", but it reads requests in its loop, and below ten functions an answer to each from a
 * process on a pair of sockets.
 */
#include "../../prog/program.h"

#include <netinet/in.h>

enum { CONNECTIONS = 2, REQUESTS = 10, DEPTH = 10, ANSWER_US = 30000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static int accepted = -1, pair[2];
static struct sockaddr_in address = {.sin_family = AF_INET};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static int listen_here(void)
{
    socklen_t size = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(s, (struct sockaddr *)&address, size) == 0 && listen(s, CONNECTIONS) == 0);
    getsockname(s, (struct sockaddr *)&address, &size);
    return s;
}

static int connect_there(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(s, (struct sockaddr *)&address, sizeof address) == 0);
    return s;
}

static bool read_one(int s)
{
    char c;
    return read(s, &c, 1) == 1;
}

static __attribute__((noinline)) bool below(int functions, int s)
{
    bool read = functions ? below(functions - 1, s) : read_one(s);
    __asm__ volatile("");
    return read;
}

static __attribute__((noinline)) bool wait_below(int functions, int events)
{
    struct epoll_event event;
    bool is = functions ? wait_below(functions - 1, events) : epoll_wait(events, &event, 1, -1) > 0;
    __asm__ volatile("");
    return is;
}

static int take(void)
{
    pthread_mutex_lock(&mutex);
    while (accepted < 0)
        pthread_cond_wait(&some, &mutex);
    int s = accepted;
    accepted = -1;
    pthread_mutex_unlock(&mutex);
    return s;
}

static void give(int s)
{
    pthread_mutex_lock(&mutex);
    accepted = s;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&mutex);
}

static void *serve(void *arg)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        int s = take();
        while (below(DEPTH, s))
            must(write(s, "", 1) == 1);
        close(s);
    }
    return arg;
}

static bool read_answer(int s)
{
    char c;
    return read(s, &c, 1) == 1;
}

static __attribute__((noinline)) bool ask_below(int functions, int s)
{
    bool read = functions ? ask_below(functions - 1, s) : read_answer(s);
    __asm__ volatile("");
    return read;
}

static void *relay(void *arg)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        int s = take();
        while (read_one(s))
            must(write(pair[0], "", 1) == 1 && ask_below(DEPTH, pair[0]) && write(s, "", 1) == 1);
        close(s);
    }
    close(pair[0]);
    return arg;
}

static void follow_events(int s)
{
    int events = epoll_create1(0);
    must(epoll_ctl(events, EPOLL_CTL_ADD, s, &(struct epoll_event){.events = EPOLLIN}) == 0);
    while (wait_below(3, events) && read_one(s))
        ;
    close(events);
}

static void *ask(void *arg)
{
    int s = connect_there();
    for (int i = 0; i < REQUESTS; i++)
        must(write(s, "", 1) == 1 && below(DEPTH, s));
    close(s);
    return arg;
}

/* What the other process does: its client, or its server. */
static int be_client(int pause_us)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        usleep(30000);
        int s = connect_there();
        for (int k = 0; k < REQUESTS; k++) {
            usleep(pause_us);
            must(write(s, "", 1) == 1 && read_one(s));
        }
        close(s);
    }
    return 0;
}

static int answer(int s)
{
    while (read_one(s)) {
        usleep(ANSWER_US);
        must(write(s, "", 1) == 1);
    }
    return 0;
}

static int be_server(int listens)
{
    return answer(accept(listens, NULL, NULL));
}

static int be_peer(int s)
{
    for (int i = 0; i < REQUESTS; i++) {
        usleep(3000);
        must(write(s, "", 1) == 1);
    }
    return 0;
}

static void with_events(void)
{
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    if (!fork())
        _exit(be_peer(pair[1]));
    close(pair[1]);
    follow_events(pair[0]);
}

/* From then on an accept never waits. */
static void wait_without_blocking(int listens)
{
    must(fcntl(listens, F_SETFL, O_NONBLOCK) == 0);
    must(poll(&(struct pollfd){listens, POLLIN, 0}, 1, -1) == 1);
}

static void with_peer(void)
{
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    if (!fork()) {
        close(pair[0]);
        _exit(answer(pair[1]));
    }
    close(pair[1]);
}

static void with_thread(const char *mode)
{
    bool asks = strcmp(mode, "asks") == 0, relays = strcmp(mode, "relays") == 0;
    int listens = listen_here();
    if (!fork())
        _exit(asks ? be_server(listens) : be_client(relays ? 20 : 3000));
    if (relays)
        with_peer();
    pthread_t t;
    pthread_create(&t, NULL, asks ? ask : relays ? relay : serve, NULL);
    for (int i = 0; !asks && i < CONNECTIONS; i++) {
        if (strcmp(mode, "ready") == 0)
            wait_without_blocking(listens);
        give(accept(listens, NULL, NULL));
    }
    pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "serves";
    if (strcmp(mode, "events") == 0)
        with_events();
    else
        with_thread(mode);
    while (wait(NULL) > 0)
        ;
    return 0;
}
