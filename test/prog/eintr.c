/*
 * Calls that a signal ends with EINTR whatever SA_RESTART says, and writes that it cuts short, a
 * great many, each from a thread that has just used the CPU: eintr [seconds [noise]]. Prints
 * "CALL COUNT INTERRUPTED". noise: a signal of
 * the program's own every millisecond.
 */
#include "program.h"
#include <sys/ipc.h>
#include <sys/sem.h>

static const struct timespec moment = {0, 20000};
static int silent[2], stream[2], epoll, semaphores;
static volatile bool stop;
static bool noise;
static sigset_t nothing, full;

static int do_poll(void)
{
    return poll(&(struct pollfd){silent[0], POLLIN, 0}, 1, 1);
}

static int do_ppoll(void)
{
    return ppoll(&(struct pollfd){silent[0], POLLIN, 0}, 1, &moment, &nothing);
}

static int do_ppoll_blocking(void)
{
    return ppoll(&(struct pollfd){silent[0], POLLIN, 0}, 1, &moment, &full);
}

static int do_select(void)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(silent[0], &set);
    return select(silent[0] + 1, &set, NULL, NULL, &(struct timeval){0, 20});
}

static int do_pselect(void)
{
    return pselect(0, NULL, NULL, NULL, &moment, &nothing);
}

static int do_epoll_wait(void)
{
    return epoll_wait(epoll, &(struct epoll_event){0}, 1, 1);
}

static int do_nanosleep(void)
{
    return nanosleep(&moment, NULL);
}

static int do_clock_nanosleep(void)
{
    struct timespec t = after(CLOCK_MONOTONIC, (uint64_t)moment.tv_nsec);
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    return errno ? -1 : 0;
}

static int do_usleep(void)
{
    return usleep(20);
}

/* SO_RCVTIMEO */
static int do_recv(void)
{
    char byte;
    return (int)recv(silent[0], &byte, 1, 0);
}

static int do_semtimedop(void)
{
    return semtimedop(semaphores, &(struct sembuf){0, -1, 0}, 1, &moment);
}

static int do_sem_timedwait(void)
{
    static sem_t sem;
    struct timespec t = after(CLOCK_REALTIME, (uint64_t)moment.tv_nsec);
    return sem_timedwait(&sem, &t);
}

static int do_sigtimedwait(void)
{
    return sigtimedwait(&full, NULL, &moment);
}

/* Does not fit at once: all of it is written, or a signal came between. */
static int do_write(void)
{
    static char data[200000];
    ssize_t n = write(stream[1], data, sizeof data);
    errno = EINTR;
    return n == sizeof data ? 0 : -1;
}

static struct call {
    const char *name;
    int (*make)(void);
    uint64_t count, interrupted;
} calls[] = {
    {.name = "poll", .make = do_poll},
    {.name = "ppoll", .make = do_ppoll},
    {.name = "ppoll with all signals blocked", .make = do_ppoll_blocking},
    {.name = "select", .make = do_select},
    {.name = "pselect", .make = do_pselect},
    {.name = "epoll_wait", .make = do_epoll_wait},
    {.name = "nanosleep", .make = do_nanosleep},
    {.name = "clock_nanosleep", .make = do_clock_nanosleep},
    {.name = "usleep", .make = do_usleep},
    {.name = "recv", .make = do_recv},
    {.name = "semtimedop", .make = do_semtimedop},
    {.name = "sem_timedwait", .make = do_sem_timedwait},
    {.name = "sigtimedwait", .make = do_sigtimedwait},
    {.name = "write", .make = do_write},
};

static void burn(int n)
{
    for (volatile int i = 0; i < n; i++)
        ;
}

static void on_alarm(int signal)
{
    (void)signal;
}

/* As a tracer would that used a timer of any other kind. */
static void make_noise(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM, ._sigev_un._tid = gettid()};
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    timer_t timer;
    sigaction(SIGALRM, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &every, NULL);
}

static void *repeat(void *arg)
{
    struct call *c = arg;
    prctl(PR_SET_TIMERSLACK, 1);
    if (c->make == do_sigtimedwait)
        pthread_sigmask(SIG_SETMASK, &full, NULL);
    if (noise)
        make_noise();
    while (!stop) {
        burn(2000 + (int)(c->count % 64) * 64);
        c->interrupted += c->make() < 0 && errno == EINTR;
        c->count++;
    }
    return NULL;
}

static void *drink(void *unused)
{
    static char data[8192];
    while (read(stream[0], data, sizeof data) > 0)
        burn(500);
    return unused;
}

int main(int argc, char **argv)
{
    enum { CALLS = sizeof calls / sizeof *calls };
    pthread_t thread[CALLS], reader;
    sigfillset(&full);
    socketpair(AF_UNIX, SOCK_STREAM, 0, silent);
    setsockopt(silent[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, 20},
               sizeof(struct timeval));
    epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, silent[0], &(struct epoll_event){.events = EPOLLIN});
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    if (pipe(stream) != 0)
        return 1;
    pthread_create(&reader, NULL, drink, NULL);
    noise = argc > 2;
    for (int i = 0; i < CALLS; i++)
        pthread_create(&thread[i], NULL, repeat, &calls[i]);
    struct timespec end = {atoi(argc > 1 ? argv[1] : "1"), 0};
    while (nanosleep(&end, &end) != 0)
        ;
    stop = true;
    for (int i = 0; i < CALLS; i++)
        pthread_join(thread[i], NULL);
    close(stream[1]);
    pthread_join(reader, NULL);
    semctl(semaphores, 0, IPC_RMID);
    for (int i = 0; i < CALLS; i++)
        printf("%s\t%llu\t%llu\n", calls[i].name, (unsigned long long)calls[i].count,
               (unsigned long long)calls[i].interrupted);
    return 0;
}
