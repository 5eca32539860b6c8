/*
 * A thread reads below ten functions. "serves": it reads requests from those who have connected to
 * the program, one connection after the other, and between them it waits for the next one. "asks":
 * it has connected to another process itself, and reads answers. "events": the first thread waits
 * for events of a pair of sockets a few functions below its loop, and reads them in the loop.
 */
#include "../../prog/program.h"

#include <netinet/in.h>

enum { CONNECTIONS = 2, REQUESTS = 10, DEPTH = 10 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static int accepted = -1;
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
static int be_client(void)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        usleep(30000);
        int s = connect_there();
        for (int k = 0; k < REQUESTS; k++) {
            usleep(3000);
            must(write(s, "", 1) == 1 && read_one(s));
        }
        close(s);
    }
    return 0;
}

static int be_server(int listens)
{
    int s = accept(listens, NULL, NULL);
    while (read_one(s)) {
        usleep(3000);
        must(write(s, "", 1) == 1);
    }
    return 0;
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
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    if (!fork())
        _exit(be_peer(pair[1]));
    close(pair[1]);
    follow_events(pair[0]);
}

static void with_thread(bool serves)
{
    int listens = listen_here();
    if (!fork())
        _exit(serves ? be_client() : be_server(listens));
    pthread_t t;
    pthread_create(&t, NULL, serves ? serve : ask, NULL);
    for (int i = 0; serves && i < CONNECTIONS; i++)
        give(accept(listens, NULL, NULL));
    pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "serves";
    if (strcmp(mode, "events") == 0)
        with_events();
    else
        with_thread(strcmp(mode, "serves") == 0);
    return wait(NULL) < 0;
}
