/*
 * Four workers accept connections, and serve each for 5 ms. The argument says how they come:
 *   own      each worker has a socket of its own, and all clients connect to the first one
 *   quiet    as own, but each client comes when the first worker waits for one
 *   shared   all workers have one socket
 *   timeout  as own, but a worker that has waited for 2 ms looks and waits anew
 * Prints how many each worker accepted.
 */
#include "../../prog/asleep.h"

#include <arpa/inet.h>

enum { WORKERS = 4, CLIENTS = 60 };

static int listener[WORKERS];
static struct sockaddr_in at[WORKERS];
static int accepted[WORKERS];
static _Atomic pid_t first; /* the first worker */

static void must(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        abort();
    }
}

static void listen_at(int i)
{
    socklen_t n = sizeof at[i];
    at[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener[i] = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener[i], (struct sockaddr *)&at[i], n) == 0, "bind");
    must(getsockname(listener[i], (struct sockaddr *)&at[i], &n) == 0, "getsockname");
    must(listen(listener[i], CLIENTS) == 0, "listen");
}

__attribute__((noinline)) static void serve(int connection)
{
    char c;
    must(read(connection, &c, 1) == 1, "read");
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    must(write(connection, &c, 1) == 1, "write");
    close(connection);
}

static void *work(void *arg)
{
    int me = (int)(size_t)arg;
    if (me == 0)
        first = gettid();
    for (int connection = 0; connection >= 0 || errno == EAGAIN;) {
        connection = accept(listener[me], NULL, NULL);
        if (connection >= 0) {
            accepted[me]++;
            serve(connection);
        }
    }
    return NULL;
}

static int ask(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(s, (struct sockaddr *)&at[0], sizeof at[0]) == 0, "connect");
    must(write(s, "?", 1) == 1, "write");
    return s;
}

/* Until that worker is asleep where it waits for connections. */
static void await_worker(pid_t thread)
{
    for (int slept = 0; slept < 3; slept = is_asleep(thread) ? slept + 1 : 0)
        ;
}

static void get_answer(int s)
{
    char c;
    must(read(s, &c, 1) == 1, "read");
    close(s);
}

int main(int argc, char **argv)
{
    int client[CLIENTS];
    struct timeval wait = {.tv_usec = 2000};
    if (argc < 2)
        return 2;
    bool quiet = strcmp(argv[1], "quiet") == 0, shared = strcmp(argv[1], "shared") == 0;
    for (int i = 0; i < WORKERS; i++) {
        if (i == 0 || !shared)
            listen_at(i);
        else
            listener[i] = listener[0];
        if (strcmp(argv[1], "timeout") == 0)
            must(setsockopt(listener[i], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0, "wait");
    }
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, work, (void *)i) == 0, "pthread_create");
    }
    for (int i = 0; i < CLIENTS; i++) {
        while (!first)
            ;
        if (quiet)
            await_worker(first);
        client[i] = ask();
        if (quiet)
            get_answer(client[i]);
    }
    for (int i = 0; i < CLIENTS && !quiet; i++)
        get_answer(client[i]);
    for (int i = 0; i < WORKERS; i++)
        printf("%d%c", accepted[i], i + 1 < WORKERS ? ' ' : '\n');
}
