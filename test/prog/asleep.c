/*
 * A thread in each of many waits, named after it, until standard input ends. Writes "ready", and a
 * line for each wait that ends before that, with its result.
 */
#include "program.h"
#include <arpa/inet.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

static int silent[2], pair[2], listening, epoll, semaphores, messages, watch, locked, child;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t read_by = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t gate;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t sleeper;
static sem_t slots, in_once;
static sigset_t usual;
static unsigned word;
static _Atomic int over;
static const struct timespec hour = {3600, 0};

CALL(do_mutex, pthread_mutex_lock(&cache_lock))
CALL(do_rdlock, pthread_rwlock_rdlock(&written))
CALL(do_wrlock, pthread_rwlock_wrlock(&written))
CALL(do_wrlock_readers, pthread_rwlock_wrlock(&read_by))

static long do_cond(void)
{
    pthread_mutex_lock(&other);
    return pthread_cond_wait(&news, &other);
}

CALL(do_semaphore, sem_wait(&slots))
CALL(do_barrier, pthread_barrier_wait(&gate))

static void wait_in_once(void)
{
    sem_post(&in_once);
    nanosleep(&hour, NULL);
}

CALL(do_once, pthread_once(&once, wait_in_once))
CALL(do_join, pthread_join(sleeper, NULL))
CALL(do_futex, syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))

static long do_poll(void)
{
    return poll((struct pollfd[]){{silent[0], POLLIN, 0}, {pair[0], POLLIN, 0}}, 2, -1);
}

static long do_select(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(silent[0], &set);
    return select(silent[0] + 1, &set, NULL, NULL, NULL);
}

static long do_epoll(void)
{
    return epoll_wait(epoll, &(struct epoll_event){0}, 1, -1);
}

static long do_epoll_timed(void)
{
    return epoll_wait(epoll, &(struct epoll_event){0}, 1, 3600000);
}

CALL(do_accept, accept(listening, NULL, NULL))
CALL(do_recv, recv(pair[0], &(char){0}, 1, 0))
CALL(do_read, read(silent[0], &(char){0}, 1))

static long do_inotify(void)
{
    char events[512];
    return read(watch, events, sizeof events);
}

CALL(do_flock, flock(locked, LOCK_EX))
CALL(do_sleep, nanosleep(&hour, NULL))
CALL(do_sleep_left, sleep(3600))
CALL(do_child, waitpid(child, NULL, 0))

static long do_semop(void)
{
    return semop(semaphores, &(struct sembuf){0, -1, 0}, 1);
}

static long do_semtimedop(void)
{
    return semtimedop(semaphores, &(struct sembuf){0, -1, 0}, 1, &hour);
}

static long do_msgrcv(void)
{
    struct {
        long type;
        char text[8];
    } message;
    return msgrcv(messages, &message, sizeof message.text, 0, 0);
}

CALL(do_sigtimedwait, sigtimedwait(&usual, NULL, &hour))
CALL(do_sigwaitinfo, sigwaitinfo(&usual, NULL))
CALL(do_pause, pause())

static long do_spin(void)
{
    volatile long turns = 0;
    while (turns >= 0)
        turns = (turns + 1) & 1023;
    return turns;
}

static const struct wait {
    const char *name;
    long (*begin)(void);
} waits[] = {
    {"mutex", do_mutex},
    {"rdlock", do_rdlock},
    {"wrlock", do_wrlock},
    {"wrlock readers", do_wrlock_readers},
    {"cond", do_cond},
    {"semaphore", do_semaphore},
    {"barrier", do_barrier},
    {"once runs", do_once},
    {"once", do_once},
    {"join", do_join},
    {"futex", do_futex},
    {"poll", do_poll},
    {"select", do_select},
    {"epoll", do_epoll},
    {"epoll timed", do_epoll_timed},
    {"accept", do_accept},
    {"recv", do_recv},
    {"read", do_read},
    {"inotify", do_inotify},
    {"flock", do_flock},
    {"sleep", do_sleep},
    {"sleep left", do_sleep_left},
    {"child", do_child},
    {"semop", do_semop},
    {"semtimedop", do_semtimedop},
    {"msgrcv", do_msgrcv},
    {"sigtimedwait", do_sigtimedwait},
    {"sigwaitinfo", do_sigwaitinfo},
    {"pause", do_pause},
    {"spin", do_spin},
};

static void *run(void *arg)
{
    const struct wait *w = arg;
    pthread_setname_np(pthread_self(), w->name);
    long result = w->begin();
    if (over)
        return NULL;
    printf("%s: %ld, %s\n", w->name, result, strerror(errno));
    fflush(stdout);
    return NULL;
}

static void make_sockets(void)
{
    struct timeval hours = {7200, 0};
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listening = socket(AF_INET, SOCK_STREAM, 0);
    bind(listening, (struct sockaddr *)&here, sizeof here);
    listen(listening, 1);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &hours, sizeof hours);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &hours, sizeof hours);
    epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &(struct epoll_event){.events = EPOLLIN});
}

static void make_rest(void)
{
    char name[] = "/tmp/asleep-XXXXXX";
    if (pipe(silent) != 0)
        abort();
    int holder = mkstemp(name);
    locked = open(name, O_RDONLY);
    flock(holder, LOCK_EX);
    unlink(name);
    watch = inotify_init();
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    messages = msgget(IPC_PRIVATE, 0600);
    pthread_barrier_init(&gate, NULL, 2);
    sem_init(&slots, 0, 0);
    sem_init(&in_once, 0, 0);
    sigemptyset(&usual);
    sigaddset(&usual, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usual, NULL);
    pthread_mutex_lock(&cache_lock);
    pthread_rwlock_wrlock(&written);
    pthread_rwlock_rdlock(&read_by);
}

int main(void)
{
    enum { WAITS = sizeof waits / sizeof *waits };
    pthread_t thread;
    char c;
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
    }
    make_sockets();
    make_rest();
    for (int i = 0; i < WAITS; i++) {
        pthread_create(&thread, NULL, run, (void *)&waits[i]);
        if (strcmp(waits[i].name, "once runs") == 0)
            sem_wait(&in_once); /* the second waits for what this runs */
        if (i == 0)
            sleeper = thread;
    }
    usleep(200000);
    puts("ready");
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    over = 1;
    semctl(semaphores, 0, IPC_RMID);
    msgctl(messages, IPC_RMID, NULL);
    kill(child, SIGKILL);
    _exit(0);
}
