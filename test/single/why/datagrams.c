/*
 * Programs that send and receive datagrams: datagrams MODE. Servers, for which a child process is
 * the client: it sends requests, and then SIGTERM. Each request takes 20 ms in commit_order.
 *
 *   polls    waits in poll
 *   blocks   waits in recvfrom
 *   several  waits in recvmmsg, answers by sendmmsg
 *   reuses   four threads, each with a socket of its own for the same port
 *   hands    main receives, and a pool works and answers
 *   local    binds a UNIX name instead of a port
 *   hears    answers nothing
 *
 * Programs whose own work ends them:
 *
 *   asks     asks a child process, which takes 20 ms for an answer
 *   tests    main asks a thread of the same program, which takes 20 ms for an answer
 *   dials    a thread asks so, through connected sockets; main waits for its signal
 *   reports  computes, and sends a figure after each part
 *   copies   main sends a file to a thread, which takes 20 ms for each part
 *   talks    as asks, through a pair of sockets
 *   listens  as talks, and has a socket to which nobody connects, such as one for metrics
 *
 * Prints the number of requests.
 */
#include "../../prog/program.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/un.h>

enum { WORK_US = 20000, QUIET_US = 300000, REQUESTS = 16, WORKERS = 4 };
static union {
    struct sockaddr any;
    struct sockaddr_in ip;
    struct sockaddr_un local;
} address;
static socklen_t address_size;
static int fd[WORKERS], fds;
static const char *mode;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static __attribute__((noinline)) void commit_order(void)
{
    usleep(WORK_US);
}

/* Sockets -------------------------------------------------------------------------------------- */

static int new_socket(void)
{
    int s = socket(address.any.sa_family, SOCK_DGRAM, 0);
    if (s < 0)
        abort();
    return s;
}

static int bound_socket(void)
{
    int s = new_socket(), on = is("reuses");
    if (setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) ||
        bind(s, &address.any, address_size))
        abort();
    return s;
}

/* Takes a port that the kernel has free, or a name. */
static void choose_address(void)
{
    address.local.sun_family = AF_UNIX;
    address_size = sizeof address.local;
    snprintf(address.local.sun_path + 1, 100, "gotrace-datagrams-%d", getpid());
    if (is("local"))
        return;
    address_size = sizeof address.ip;
    address.ip = (struct sockaddr_in){.sin_family = AF_INET};
    address.ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int s = bound_socket();
    if (getsockname(s, &address.any, &address_size))
        abort();
    close(s);
}

/* Servers -------------------------------------------------------------------------------------- */

struct request {
    char byte;
    struct sockaddr_storage from;
    socklen_t from_size;
};

/* false: the sockets were shut down. */
static bool receive(int s, struct request *r)
{
    r->from_size = sizeof r->from;
    return recvfrom(s, &r->byte, 1, 0, (void *)&r->from, &r->from_size) == 1;
}

static void answer(int s, const struct request *r)
{
    commit_order();
    if (!is("hears") && sendto(s, &r->byte, 1, 0, (const void *)&r->from, r->from_size) != 1)
        abort();
}

static void *serve(void *socket)
{
    struct request r;
    int s = *(int *)socket;
    struct pollfd input = {.fd = s, .events = POLLIN};
    while ((!is("polls") || poll(&input, 1, -1)) && receive(s, &r))
        answer(s, &r);
    return NULL;
}

static void serve_several(void)
{
    struct request r;
    struct iovec bytes = {&r.byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &bytes, .msg_iovlen = 1}};
    do {
        message.msg_hdr.msg_name = &r.from;
        message.msg_hdr.msg_namelen = sizeof r.from;
        if (recvmmsg(fd[0], &message, 1, 0, NULL) != 1 || !message.msg_len)
            break;
        commit_order();
    } while (sendmmsg(fd[0], &message, 1, 0) == 1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct request queue[REQUESTS];
static int first, end;
static bool over;

static void *work(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (first == end && !over)
            pthread_cond_wait(&filled, &lock);
        if (first == end)
            break;
        struct request r = queue[first++];
        pthread_mutex_unlock(&lock);
        answer(fd[0], &r);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void hand_over(void)
{
    struct request r;
    while (receive(fd[0], &r)) {
        pthread_mutex_lock(&lock);
        queue[end++] = r;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    over = true;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&lock);
}

static void on_signal(int signal)
{
    (void)signal;
    for (int i = 0; i < fds; i++)
        shutdown(fd[i], SHUT_RDWR); /* ends recvfrom, though the socket is not connected */
}

static void be_server(void)
{
    pthread_t thread[WORKERS];
    int threads = is("reuses") || is("hands") ? WORKERS : 0;
    for (int i = 0; i < threads; i++)
        pthread_create(&thread[i], NULL, is("hands") ? work : serve, &fd[i]);
    if (is("hands"))
        hand_over();
    else if (is("several"))
        serve_several();
    else if (!threads)
        serve(&fd[0]);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

/* Clients -------------------------------------------------------------------------------------- */

/* A local client needs a name, too, which the kernel chooses. */
static void ask(bool waits)
{
    char byte = 'x';
    sa_family_t any = AF_UNIX;
    int s = new_socket();
    if ((is("local") && bind(s, (void *)&any, sizeof any)) ||
        (is("dials") && connect(s, &address.any, address_size)))
        abort();
    if (sendto(s, &byte, 1, 0, &address.any, address_size) != 1 ||
        (waits && recv(s, &byte, 1, 0) != 1))
        abort();
    close(s);
}

static void be_client(void)
{
    usleep(QUIET_US); /* the server has nothing to do */
    for (int i = 0; i < REQUESTS; i++) {
        ask(!is("hears"));
        usleep(is("hears") ? 2 * WORK_US : 0);
    }
    usleep(QUIET_US);
    kill(getppid(), SIGTERM);
    _exit(0);
}

/* Other programs ------------------------------------------------------------------------------- */

static void *ask_many(void *arg)
{
    for (int i = 0; i < REQUESTS; i++)
        ask(true);
    if (is("dials"))
        kill(getpid(), SIGUSR1);
    return arg;
}

static void dial(void)
{
    pthread_t thread;
    sigset_t done;
    int signal;
    sigemptyset(&done);
    sigaddset(&done, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &done, NULL);
    pthread_create(&thread, NULL, ask_many, NULL);
    sigwait(&done, &signal);
    pthread_join(thread, NULL);
}

/* asks, or dials */
static void ask_child(void)
{
    int ready[2];
    char byte;
    if (pipe(ready))
        abort();
    pid_t child = fork();
    if (child == 0) {
        fd[0] = bound_socket();
        close(ready[1]);
        close(ready[0]);
        serve(&fd[0]);
        _exit(0);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1))
        abort();
    if (is("dials"))
        dial();
    else
        ask_many(NULL);
    kill(child, SIGKILL);
}

static void listen_for_nobody(void)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(s, &address.any, address_size) || listen(s, 1))
        abort();
}

static void test(void)
{
    pthread_t thread;
    fd[0] = bound_socket();
    fds = 1;
    pthread_create(&thread, NULL, serve, &fd[0]);
    ask_many(NULL);
    on_signal(0);
    pthread_join(thread, NULL);
}

static void talk_to_child(void)
{
    int pair[2];
    char byte = 'x';
    if (is("listens"))
        listen_for_nobody();
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
        abort();
    pid_t child = fork();
    if (child == 0) {
        for (; recv(pair[0], &byte, 1, 0) == 1; send(pair[0], &byte, 1, 0))
            commit_order();
        _exit(0);
    }
    for (int i = 0; i < REQUESTS; i++) {
        if (send(pair[1], &byte, 1, 0) != 1 || recv(pair[1], &byte, 1, 0) != 1)
            abort();
    }
    kill(child, SIGKILL);
}

static void *take_parts(void *socket)
{
    struct request r;
    for (int i = 0; i < REQUESTS && receive(*(int *)socket, &r); i++)
        commit_order();
    return NULL;
}

static void copy(void)
{
    pthread_t thread;
    fd[0] = bound_socket();
    pthread_create(&thread, NULL, take_parts, &fd[0]);
    for (int i = 0; i < REQUESTS; i++)
        ask(false);
    pthread_join(thread, NULL);
}

static void report(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        compute_ns(WORK_US * 1000);
        ask(false);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} others[] = {{"asks", ask_child},       {"tests", test},  {"dials", ask_child},
              {"reports", report},       {"copies", copy}, {"talks", talk_to_child},
              {"listens", talk_to_child}};

int main(int argc, char **argv)
{
    mode = argc == 2 ? argv[1] : "";
    choose_address();
    signal(SIGTERM, on_signal);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (is(others[i].name)) {
            others[i].run();
            printf("%d\n", REQUESTS);
            return 0;
        }
    }
    for (fds = 0; fds < (is("reuses") ? WORKERS : 1); fds++)
        fd[fds] = bound_socket();
    if (fork() == 0)
        be_client();
    be_server();
    wait(NULL);
    printf("%d\n", REQUESTS);
    return 0;
}
