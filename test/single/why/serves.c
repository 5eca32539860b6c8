/*
 * Servers whose main loop waits for input nearly all the time: serves MODE. A child process sends
 * requests, and then SIGTERM. Each request takes 20 ms in commit_order.
 *
 *   drains  a loop hands what comes to a pool, which also accepts; told to end, it waits for the
 *           pool, and main waits for it all the time
 *   born    main polls and makes a thread for each of three requests
 *   quiet   main waits for signals; a loop makes its writer when the first of three requests comes
 *   busy    main hands requests to a pool that hardly ever waits for one, for a lock is held in
 *           commit_order
 *   often   at the one request a loop first hands a worker 110,000 jobs without work, each while
 * the worker rests
 *
 * Prints the number of requests.
 */
#include "../../prog/program.h"
#include <arpa/inet.h>
#include <sys/select.h>

enum { WORK_US = 20000, QUEUE = 256, WORKERS = 2, OFTEN = 110000, NO_WORK = -1 };
static const struct mode {
    const char *name;
    int alone;                 /* connections one after the other, each with one request */
    int connections, requests; /* then so many at a time, each with so many requests */
} modes[] = {{"drains", 0, 2, 10},
             {"born", 3, 0, 0},
             {"quiet", 3, 0, 0},
             {"busy", 6, 5, 8},
             {"often", 1, 0, 0}};
static const struct mode *mode;
static int listener, polled, stop[2], asks;

/* The work ------------------------------------------------------------------------------------- */

static pthread_mutex_t orders = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void commit_order(void)
{
    usleep(WORK_US);
}

/* Whether there was a request. */
static bool answer(int fd)
{
    char byte;
    if (read(fd, &byte, 1) != 1)
        return false;
    bool locks = !strcmp(mode->name, "busy");
    if (locks)
        pthread_mutex_lock(&orders);
    commit_order();
    if (locks)
        pthread_mutex_unlock(&orders);
    return write(fd, &byte, 1) == 1;
}

/* The pool ------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, left = PTHREAD_COND_INITIALIZER;
static int queue[QUEUE], first, end, workers;
static bool rests;

static void watch(int fd, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};
    if (epoll_ctl(polled, operation, fd, &event))
        _exit(1);
}

static void put(int fd)
{
    pthread_mutex_lock(&lock);
    queue[end++ % QUEUE] = fd;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

static void put_at_rest(int fd)
{
    pthread_mutex_lock(&lock);
    while (!rests)
        pthread_cond_wait(&left, &lock);
    rests = false;
    pthread_mutex_unlock(&lock);
    put(fd);
}

static int take(void)
{
    pthread_mutex_lock(&lock);
    while (first == end) {
        rests = true;
        pthread_cond_signal(&left);
        pthread_cond_wait(&filled, &lock);
    }
    int fd = queue[first++ % QUEUE];
    pthread_mutex_unlock(&lock);
    return fd;
}

static void handle(int fd)
{
    if (fd == listener) {
        watch(accept4(listener, NULL, NULL, 0), EPOLL_CTL_ADD);
        watch(listener, EPOLL_CTL_MOD);
    } else if (answer(fd)) {
        watch(fd, EPOLL_CTL_MOD);
    } else {
        close(fd);
    }
}

static void *worker(void *arg)
{
    for (int fd; (fd = take()) != stop[0];)
        if (fd != NO_WORK)
            handle(fd);
    pthread_mutex_lock(&lock);
    usleep(1000);
    workers--;
    pthread_cond_signal(&left);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void begin_workers(int n)
{
    pthread_t thread;
    workers = n;
    for (int i = 0; i < n; i++)
        pthread_create(&thread, NULL, worker, NULL);
}

static void end_workers(void)
{
    int n = workers;
    for (int i = 0; i < n; i++)
        put(stop[0]);
    pthread_mutex_lock(&lock);
    while (workers)
        pthread_cond_wait(&left, &lock);
    pthread_mutex_unlock(&lock);
}

/* The loops ------------------------------------------------------------------------------------ */

/* pool: how many workers to begin with; 0: one when the first request comes. */
static void *loop(void *pool)
{
    struct epoll_event event;
    begin_workers((int)(intptr_t)pool);
    watch(listener, EPOLL_CTL_ADD);
    watch(stop[0], EPOLL_CTL_ADD);
    for (;;) {
        if (epoll_wait(polled, &event, 1, -1) != 1)
            continue;
        if (event.data.fd == stop[0])
            break;
        if (!workers && event.data.fd != listener)
            begin_workers(1);
        bool often = event.data.fd != listener && !strcmp(mode->name, "often");
        for (int i = 0; often && i < OFTEN; i++)
            put_at_rest(NO_WORK);
        if (event.data.fd == listener && strcmp(mode->name, "drains") != 0)
            handle(listener);
        else
            put(event.data.fd);
    }
    end_workers();
    return pool;
}

static void *serve_one(void *fd)
{
    answer((int)(intptr_t)fd);
    close((int)(intptr_t)fd);
    return NULL;
}

static void serve_by_new_threads(void)
{
    pthread_t thread[QUEUE];
    int n = 0;
    struct pollfd fds[] = {{.fd = listener, .events = POLLIN}, {.fd = stop[0], .events = POLLIN}};
    while (!fds[1].revents) {
        if (poll(fds, 2, -1) > 0 && fds[0].revents)
            pthread_create(&thread[n++], NULL, serve_one,
                           (void *)(intptr_t)accept4(listener, NULL, NULL, 0));
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

static void serve_beside_main(bool quiet)
{
    pthread_t thread;
    sigset_t none;
    sigemptyset(&none);
    pthread_create(&thread, NULL, loop, (void *)(intptr_t)(quiet ? 0 : WORKERS));
    if (quiet)
        pselect(0, NULL, NULL, NULL, &(struct timespec){60, 0}, &none);
    pthread_join(thread, NULL);
}

/* The client ----------------------------------------------------------------------------------- */

static void *ask(void *address)
{
    char byte = 'x';
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, address, sizeof(struct sockaddr_in)))
        _exit(1);
    for (int i = 0; i < asks; i++) {
        if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
            _exit(1);
    }
    close(fd);
    return NULL;
}

static void be_client(struct sockaddr_in *address)
{
    pthread_t thread[QUEUE];
    usleep(300000); /* the server has nothing to do */
    asks = 1;
    for (int i = 0; i < mode->alone; i++)
        ask(address);
    asks = mode->requests;
    for (int i = 0; i < mode->connections; i++)
        pthread_create(&thread[i], NULL, ask, address);
    for (int i = 0; i < mode->connections; i++)
        pthread_join(thread[i], NULL);
    usleep(300000);
    kill(getppid(), SIGTERM);
    _exit(0);
}

static void on_signal(int signal)
{
    (void)signal;
    if (write(stop[1], "", 1) != 1)
        _exit(1);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    for (size_t i = 0; argc == 2 && i < sizeof modes / sizeof *modes; i++)
        mode = strcmp(modes[i].name, argv[1]) ? mode : &modes[i];
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    polled = epoll_create1(0);
    if (!mode || bind(listener, (void *)&address, length) || listen(listener, 16) ||
        getsockname(listener, (void *)&address, &length) || pipe(stop))
        return 2;
    signal(SIGTERM, on_signal);
    if (!strcmp(mode->name, "often")) /* threads of one CPU hand over in less time */
        stay_on(sched_getcpu());
    if (!fork())
        be_client(&address);
    if (!strcmp(mode->name, "born"))
        serve_by_new_threads();
    else if (!strcmp(mode->name, "busy") || !strcmp(mode->name, "often"))
        loop((void *)(intptr_t)(strcmp(mode->name, "busy") ? 1 : WORKERS));
    else
        serve_beside_main(!strcmp(mode->name, "quiet"));
    wait(NULL);
    printf("%d\n", mode->alone + mode->connections * mode->requests);
    return 0;
}
