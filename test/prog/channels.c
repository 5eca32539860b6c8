/*
 * Readers and writers, processes or threads, with a journal in shared memory that says who
 * wrote when, and what was read: channels [KIND HOW ROUNDS]; without arguments the kinds. HOW is
 * letters:
 *   e  the reader waits by epoll_wait first
 *   t  all are threads of one process; x: the writer is another program, by exec
 *   2  two writers at the same moment
 *   o  the second writer in turn with the first, and says "outside", for who is to leave it out
 *   l  something is left in the stream at each read, so that none has to wait
 *   p  each answers the other one
 *   f  the writer fills a pipe, and the reader reads when that is asleep; in the end all the rest
 * else a write is made when the reader is asleep. A line for each round: round <reader's and
 * writers' threads, 0: there is none> <what was read: 1 of the first writer, 1000 of the second>
 * <ns from when the writer begins to wait for an answer to when that is begun, may be less than 0>.
 */
#include "truth.h"

#include "../../preload/gotrace.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>

enum { ROUNDS_MAX = 2000, WRITERS = 2, UNIT_OF_SECOND = 1000, PAUSE_NS = 50000, MUCH = 40000 };

static struct shared {
    char kind[16], how[16];
    int rounds, fds[2][2]; /* there and back: to read, to write */
    _Atomic int reader;    /* the thread */
    _Atomic int asked, met,
        left; /* rounds that the reader has begun; writers, of all of them; writes */
    _Atomic int writer[WRITERS];
    uint64_t got[ROUNDS_MAX];
    uint64_t waits[ROUNDS_MAX], answers[ROUNDS_MAX]; /* when the writer begins to, and the reader */
} * shared;

static int memory;

static bool is(char how)
{
    return strchr(shared->how, how);
}

static void pass(bool ok)
{
    if (!ok) {
        perror("channels");
        _exit(1);
    }
}

/* Kinds --------------------------------------------------------------------------------------- */

static void a_pipe(int fds[2])
{
    pass(pipe(fds) == 0);
}

static void a_fifo(int fds[2])
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/channels.%d.%d", getpid(), (int)(now() % 1000000));
    pass(mkfifo(path, 0600) == 0);
    fds[0] = open(path, O_RDWR);
    fds[1] = open(path, O_WRONLY);
    pass(fds[0] >= 0 && fds[1] >= 0 && unlink(path) == 0);
}

static void a_socketpair(int fds[2])
{
    pass(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
}

static void a_connection(int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM, 0);
    pass(door >= 0 && bind(door, (void *)&at, size) == 0 && listen(door, 1) == 0 &&
         getsockname(door, (void *)&at, &size) == 0);
    fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    pass(setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
    pass(connect(fds[1], (void *)&at, size) == 0);
    fds[0] = accept(door, NULL, NULL);
    pass(fds[0] >= 0);
    close(door);
}

static void an_eventfd(int fds[2])
{
    fds[0] = eventfd(0, 0);
    fds[1] = dup(fds[0]);
    pass(fds[1] >= 0);
}

static const struct kind {
    const char *name;
    void (*make)(int fds[2]);
    bool socket, survives; /* is known after exec, too */
} kinds[] = {
    {"pipe", a_pipe, false, true},
    {"fifo", a_fifo, false, true},
    {"socketpair", a_socketpair, true, false},
    {"tcp", a_connection, true, true},
    {"eventfd", an_eventfd, false, false},
};

static const struct kind *kind_of(const char *name)
{
    const struct kind *k = kinds;
    while (strcmp(k->name, name) != 0)
        k++;
    return k;
}

/* Readers and writers ------------------------------------------------------------------------- */

static void rest(void)
{
    RAW(SYS_sched_yield);
}

/* Where there are two writers all have one CPU, and the reader only when those do not want it. */
static void take_turns(void)
{
    pass(stay_on(sched_getcpu()) == 0);
}

static void be_last(void)
{
    pass(RAW(SYS_sched_setscheduler, 0, SCHED_IDLE, &(struct sched_param){0}) == 0);
}

static void sleep_briefly(void)
{
    RAW(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL);
}

static void until_all(_Atomic int *count, int n)
{
    while (*count < n)
        rest();
}

static bool is_event(void)
{
    return strcmp(shared->kind, "eventfd") == 0;
}

static void put(int fd, int writer)
{
    uint64_t value = writer ? UNIT_OF_SECOND : 1;
    const void *bytes = is_event() ? (void *)&value : writer ? "b" : "a";
    size_t n = is_event() ? sizeof value : 1;
    bool sends = kind_of(shared->kind)->socket;
    pass((sends ? send(fd, bytes, n, 0) : write(fd, bytes, n)) == (ssize_t)n);
}

static uint64_t take(int fd, int poll)
{
    struct epoll_event ready;
    uint64_t value = 0;
    char bytes[64];
    size_t room = is_event() ? sizeof value : is('l') ? 1 : sizeof bytes;
    void *to = is_event() ? (void *)&value : bytes;
    if (poll >= 0)
        pass(epoll_wait(poll, &ready, 1, -1) == 1);
    ssize_t n = kind_of(shared->kind)->socket ? recv(fd, to, room, 0) : read(fd, to, room);
    pass(n > 0);
    for (ssize_t i = 0; i < n && !is_event(); i++)
        value += bytes[i] == 'b' ? UNIT_OF_SECOND : 1;
    return value;
}

static int make_poll(int fd)
{
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    pass(poll >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0);
    return poll;
}

/* The bytes of one round may arrive in two. */
static uint64_t all_of_round(void)
{
    return is('2') ? 1 + UNIT_OF_SECOND : 1;
}

/* Two of them are more than a pipe takes. */
static void write_much(void)
{
    static char bytes[MUCH];
    gotrace_log(0, "who", "writer");
    shared->writer[0] = tid();
    for (int i = 0; i <= shared->rounds; i++) {
        shared->left++;
        pass(write(shared->fds[0][1], bytes, sizeof bytes) == sizeof bytes);
    }
}

static void read_much(void)
{
    static char bytes[MUCH];
    gotrace_log(0, "who", "reader");
    for (int i = 0; i <= shared->rounds; i++) {
        if (i < shared->rounds) {
            until_all(&shared->left, i + 2);
            until_asleep(&shared->writer[0]);
            shared->got[i] = 1;
        }
        for (ssize_t got = 0, n; got < MUCH; got += n)
            pass((n = read(shared->fds[0][0], bytes, MUCH - (size_t)got)) > 0);
    }
}

static void *read_all(void *unused)
{
    (void)unused;
    if (is('f')) {
        read_much();
        return NULL;
    }
    int fd = shared->fds[0][0], poll = is('e') ? make_poll(fd) : -1;
    shared->reader = tid();
    gotrace_log(0, "who", "reader");
    if (is('2'))
        be_last();
    for (int i = 0; i < shared->rounds; i++) {
        if (is('l'))
            until_all(&shared->left, i + 2);
        shared->asked = i + 1;
        shared->got[i] = take(fd, poll);
        for (uint64_t more = shared->got[i]; is('2') && more < all_of_round();)
            more += take(fd, -1);
        if (!is('p'))
            continue;
        busy(PAUSE_NS);
        shared->answers[i] = now();
        put(shared->fds[1][1], 0);
    }
    return NULL;
}

static bool is_turn_of(int writer, int round)
{
    return is('o') ? round % 2 == writer : is('2') || writer == 0;
}

static void wait_for_reader(int round)
{
    while (is('2') && shared->asked < round + 1)
        sleep_briefly();
    until_all(&shared->asked, round + 1);
    until_asleep(&shared->reader);
    if (!is('2'))
        return;
    shared->met++;
    until_all(&shared->met, WRITERS * (round + 1));
}

static void write_all(int writer)
{
    if (is('f')) {
        write_much();
        return;
    }
    shared->writer[writer] = tid();
    gotrace_log(0, "who", writer ? is('o') ? "outside" : "second" : "writer");
    for (int i = 0; i < shared->rounds + is('l'); i++) {
        if (!is_turn_of(writer, i))
            continue;
        if (is('l'))
            until_all(&shared->asked, i - 1);
        else if (!is('p'))
            wait_for_reader(i);
        put(shared->fds[0][1], writer);
        shared->left++;
        shared->waits[i] = now();
        if (is('p'))
            pass(take(shared->fds[1][0], -1) == 1);
    }
}

static void *write_in_thread(void *writer)
{
    write_all(writer != NULL);
    return NULL;
}

/* Making them --------------------------------------------------------------------------------- */

static void open_memory(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    pass(shared != MAP_FAILED);
}

static void make_threads(int writers)
{
    pthread_t thread[1 + WRITERS];
    pthread_create(&thread[0], NULL, read_all, NULL);
    for (int i = 0; i < writers; i++)
        pthread_create(&thread[1 + i], NULL, write_in_thread, i ? shared : NULL);
    for (int i = 0; i <= writers; i++)
        pthread_join(thread[i], NULL);
}

static void become(const char *self, int writer)
{
    char number[16];
    snprintf(number, sizeof number, "%d", memory);
    execl(self, self, number, writer ? "1" : "0", NULL);
    pass(false);
}

static void make_processes(const char *self, int writers)
{
    for (int i = 0; i < writers; i++) {
        if (fork())
            continue;
        if (is('x'))
            become(self, i);
        write_all(i);
        exit(0);
    }
    if (!fork()) {
        read_all(NULL);
        exit(0);
    }
    for (int i = 0, status; i <= writers; i++)
        pass(wait(&status) > 0 && status == 0);
}

static void print_rounds(int writers)
{
    for (int i = 0; i < shared->rounds; i++)
        printf("round %d %d %d %llu %lld\n", shared->reader, shared->writer[0],
               writers == WRITERS ? shared->writer[1] : 0, (unsigned long long)shared->got[i],
               (long long)(shared->answers[i] - shared->waits[i]));
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            printf("%s %s\n", kinds[i].name, kinds[i].survives ? "survives" : "-");
        return 0;
    }
    if (argc == 3) {
        memory = atoi(argv[1]);
        open_memory();
        write_all(atoi(argv[2]));
        return 0;
    }
    memory = memfd_create("channels", 0);
    pass(memory >= 0 && ftruncate(memory, sizeof *shared) == 0);
    open_memory();
    snprintf(shared->kind, sizeof shared->kind, "%s", argv[1]);
    snprintf(shared->how, sizeof shared->how, "%s", argv[2]);
    shared->rounds = atoi(argv[3]);
    kind_of(shared->kind)->make(shared->fds[0]);
    kind_of(shared->kind)->make(shared->fds[1]);
    if (is('2'))
        take_turns();
    int writers = is('2') || is('o') ? WRITERS : 1;
    if (is('t'))
        make_threads(writers);
    else
        make_processes(argv[0], writers);
    print_rounds(writers);
    return 0;
}
