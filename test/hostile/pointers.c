/*
 * Calls with pointers to what cannot be read or written: to nothing, into a page that may not be
 * touched, into the kernel's half, and not aligned. Prints what each call answers, or which signal
 * it ends in: libc itself touches what some point to. A row for each pointer of each call.
 */
#include "../prog/asleep.h"
#include "../prog/libc.h"

#include <dirent.h>
#include <fts.h>
#include <grp.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netdb.h>
#include <pwd.h>
#include <resolv.h>
#include <setjmp.h>
#include <shadow.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <termios.h>
#include <threads.h>
#include <wchar.h>
#include <wordexp.h>

static sigjmp_buf env;
static void *volatile p; /* the bad one */
static char *arguments[] = {"true", NULL}, *line;

static int in, out, stream, peer, dgram, dgram_peer, file, null, epoll, queue, set;
static mqd_t mq;
static char buf[4096];
/* half: its buffer at p has a length, else the kernel does not look at p. */
static struct iovec whole = {buf, 1}, half[2] = {{NULL, 1}};
static struct timespec now0, soon = {0, 1000}, until = {1, 0};
static struct timeval zero;
static sigset_t usr1;
static sem_t empty, full;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static FILE *reader;
static unsigned awaited, other = 5; /* futexes; a thread waits at the first */
static struct msghdr m;
static struct mmsghdr mm;
static struct epoll_event event = {.events = EPOLLIN};
static struct addrinfo *found;
static struct sembuf down = {0, -1, IPC_NOWAIT};
static int number, none;
static size_t size;

static long futex(void *word, int op, unsigned value, void *timeout, void *word2, unsigned value3)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, word2, value3);
}

/* Makes the next call that reads find something. */
static void refill(void)
{
    if (write(out, buf, 1) != 1 || send(peer, buf, 1, 0) != 1 || send(dgram_peer, buf, 1, 0) != 1)
        abort();
    struct {
        long type;
        char text[8];
    } msg = {1, "x"};
    if (queue >= 0 && msgsnd(queue, &msg, 8, IPC_NOWAIT) != 0)
        abort();
}

static void take_rest(void)
{
    while (read(in, buf, sizeof buf) > 0)
        ;
    while (recv(stream, buf, sizeof buf, MSG_DONTWAIT) > 0)
        ;
    while (recv(dgram, buf, sizeof buf, MSG_DONTWAIT) > 0)
        ;
    while (queue >= 0 && msgrcv(queue, buf, 8, 0, IPC_NOWAIT) >= 0)
        ;
    memset(buf, 0, sizeof buf);
}

static pid_t zombie(void)
{
    siginfo_t info;
    pid_t pid = fork();
    if (!pid)
        _exit(3);
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
    return pid;
}

static struct msghdr message(void *name, struct iovec *iov, void *control)
{
    return (struct msghdr){.msg_name = name,
                           .msg_namelen = name ? 16 : 0,
                           .msg_iov = iov,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = control ? 32 : 0};
}

static long on_rwlock(int (*lock)(pthread_rwlock_t *, const struct timespec *))
{
    int r = lock(&rwlock, p);
    if (r == 0)
        pthread_rwlock_unlock(&rwlock);
    return r;
}

static long on_rwlock_clock(int (*lock)(pthread_rwlock_t *, clockid_t, const struct timespec *),
                            clockid_t clock)
{
    int r = lock(&rwlock, clock, p);
    if (r == 0)
        pthread_rwlock_unlock(&rwlock);
    return r;
}

static long on_mutex(int (*lock)(pthread_mutex_t *, const struct timespec *))
{
    int r = lock(&mutex, p);
    if (r == 0)
        pthread_mutex_unlock(&mutex);
    return r;
}

/* The mutex may stay locked. */
static long wait_for_cond(void)
{
    static pthread_mutex_t held;
    held = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&held);
    return pthread_cond_timedwait(&cond, &held, p);
}

enum kinds {
    BAD = 1 << 0 | 1 << 1 | 1 << 2, /* NULL, a page without access, the kernel's half */
    NOT_NULL = 1 << 1 | 1 << 2,
    WORD = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3, /* and a word that is not aligned */
};

static const struct {
    const char *text;
    enum kinds kinds;
} rows[] = {
#define ROW(kinds, ...) {#__VA_ARGS__, kinds},
#include "pointers.def"
#undef ROW
};

static long answer(int row)
{
    int i = 0;
#define ROW(kinds, ...) \
    if (row == i++)     \
        return (long)(__VA_ARGS__);
#include "pointers.def"
#undef ROW
    abort();
}

static void leave(int signal)
{
    siglongjmp(env, signal);
}

static void try(int row, const char *kind)
{
    refill();
    int signal = sigsetjmp(env, 1);
    errno = 0;
    if (signal) {
        printf("%s, %s: signal %d\n", rows[row].text, kind, signal);
    } else {
        long r = answer(row);
        int error = errno;
        printf("%s, %s: %ld %s\n", rows[row].text, kind, r, error ? strerrorname_np(error) : "");
    }
    take_rest();
}

static void *wait_there(void *tid)
{
    *(_Atomic int *)tid = gettid();
    futex(&awaited, FUTEX_WAIT, 0, NULL, NULL, 0);
    return NULL;
}

static pthread_t start_waiter(void)
{
    static _Atomic int tid;
    pthread_t t;
    if (pthread_create(&t, NULL, wait_there, (void *)&tid) != 0)
        abort();
    while (!tid || !is_asleep(tid))
        sched_yield();
    return t;
}

static void open_all(void)
{
    int pair[2];
    if (pipe2(pair, O_NONBLOCK) != 0)
        abort();
    in = pair[0], out = pair[1];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        abort();
    stream = pair[0], peer = pair[1];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
        abort();
    dgram = pair[0], dgram_peer = pair[1];
    file = memfd_create("file", 0);
    null = open("/dev/null", O_WRONLY);
    epoll = epoll_create1(0);
    if (file < 0 || null < 0 || write(file, buf, sizeof buf) != sizeof buf || epoll < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, in, &event) != 0)
        abort();
    lseek(file, 0, SEEK_SET);
    queue = msgget(IPC_PRIVATE, 0600);
    set = semget(IPC_PRIVATE, 1, 0600);
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 64};
    mq = mq_open("/gotrace-pointers", O_RDWR | O_CREAT | O_NONBLOCK, 0600, &attr);
    mq_unlink("/gotrace-pointers");
    reader = fopen("/dev/zero", "r");
    sem_init(&empty, 0, 0);
    sem_init(&full, 0, 1000);
}

int main(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS};
    static union {
        char bytes[256];
        unsigned long word;
    } odd;
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct {
        const char *name;
        void *p;
    } kinds[] = {{"NULL", NULL},
                 {"no access", (char *)page + 64},
                 {"kernel", (void *)0xffff800000000000},
                 {"odd", odd.bytes + 1}};
    alarm(20); /* a call that waits is a fault of its row */
    setlinebuf(stdout);
    struct sigaction action = {.sa_handler = leave};
    for (int i = 0; i < 2; i++)
        sigaction(signals[i], &action, NULL);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    open_all();
    pthread_t waiter = start_waiter();
    for (int row = 0; row < (int)(sizeof rows / sizeof *rows); row++) {
        for (int k = 0; k < 4; k++) {
            p = kinds[k].p;
            if (rows[row].kinds & 1 << k)
                try(row, kinds[k].name);
        }
    }
    /* Requeues to nowhere work: the kernel does not look there. */
    long woken = futex(&awaited, FUTEX_WAKE, 9, NULL, NULL, 0);
    for (int k = 0; k < 3; k++)
        woken += futex(kinds[k].p, FUTEX_WAKE, 9, NULL, NULL, 0) > 0;
    printf("woken: %ld\n", woken);
    pthread_join(waiter, NULL);
    msgctl(queue, IPC_RMID, NULL);
    semctl(set, 0, IPC_RMID);
    return 0;
}
