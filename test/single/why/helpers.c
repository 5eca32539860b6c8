/*
 * A thread does the work, and a helper that main made before only waits until main ends it:
 * helpers HOW. See the table `ways`.
 */
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "../../prog/program.h"

enum { ITEMS = 10, ITEM_US = 10000, SLICE_NS = 15000000, LATE_NS = 20000000 };

static int told, late, end[2];
static sem_t go;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stop;
static sigset_t blocked;
static pthread_t helper;
static pid_t child;

static __attribute__((noinline)) void work_item(void)
{
    usleep(ITEM_US);
    __asm__ volatile("");
}

static void *worker(void *arg)
{
    for (int i = 0; i < ITEMS; i++)
        work_item();
    return arg;
}

static void work(void)
{
    RUN_THREADS(1, worker, NULL);
}

/* Helpers ------------------------------------------------------------------------------------- */

static void *poll_event(void *arg)
{
    struct pollfd event = {.fd = told, .events = POLLIN};
    poll(&event, 1, -1);
    return arg;
}

static void *poll_late(void *arg)
{
    struct pollfd event = {.fd = late, .events = POLLIN};
    poll(&event, 1, -1);
    return arg;
}

static void *epoll_event(void *arg)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = epoll_create1(0);
    epoll_ctl(fd, EPOLL_CTL_ADD, told, &event);
    epoll_wait(fd, &event, 1, -1);
    return arg;
}

static void *read_end(void *arg)
{
    char byte;
    if (read(end[0], &byte, 1) < 0)
        _exit(1);
    return arg;
}

static void *log_lines(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!stop) {
        struct timespec until = after(CLOCK_REALTIME, SLICE_NS);
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *wait_for_flag(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!stop)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return arg;
}

static void *wait_for_post(void *arg)
{
    sem_wait(&go);
    return arg;
}

static void *pause_for_ever(void *arg)
{
    pause();
    return arg;
}

static void *sleep_for_ever(void *arg)
{
    for (;;)
        sleep(1000);
    return arg;
}

static void *dispatch(void *arg)
{
    int signal;
    sigwait(&blocked, &signal);
    return arg;
}

/* How main ends them -------------------------------------------------------------------------- */

static void write_event(void)
{
    uint64_t one = 1;
    if (write(told, &one, sizeof one) != sizeof one)
        _exit(1);
}

/* As if the helper had no CPU when the event comes. */
static void write_event_late(void)
{
    struct itimerspec then = {.it_value.tv_nsec = LATE_NS};
    timerfd_settime(late, 0, &then, NULL);
    write_event();
}

static void close_end(void)
{
    close(end[1]);
}

static void set_flag(void)
{
    pthread_mutex_lock(&lock);
    stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void post(void)
{
    sem_post(&go);
}

static void interrupt(void)
{
    pthread_kill(helper, SIGUSR2);
}

static void signal_process(void)
{
    kill(getpid(), SIGUSR1);
}

static void cancel(void)
{
    pthread_cancel(helper);
}

static const struct way {
    const char *name;
    void *(*helper)(void *);
    void (*stop)(void);
    enum { JOINED, LEFT, CHILD, SIGNALLED, ORPHAN } as; /* how main waits; from CHILD: a process */
} ways[] = {{"eventfd", poll_event, write_event, JOINED},
            {"late", poll_late, write_event_late, JOINED},
            {"epoll", epoll_event, write_event, JOINED},
            {"pipe", read_end, close_end, JOINED},
            {"timed", log_lines, set_flag, JOINED},
            {"flag", wait_for_flag, set_flag, JOINED},
            {"post", wait_for_post, post, JOINED},
            {"kill", pause_for_ever, interrupt, JOINED},
            {"cancel", sleep_for_ever, cancel, JOINED},
            {"cancelled_read", read_end, cancel, JOINED},
            {"cancelled_wait", wait_for_flag, cancel, JOINED},
            {"sigwait", dispatch, signal_process, JOINED},
            {"exit", wait_for_flag, NULL, LEFT},
            {"exit_sigwait", dispatch, NULL, LEFT},
            {"exit_read", read_end, NULL, LEFT},
            {"child", read_end, close_end, CHILD},
            {"signalled", read_end, close_end, SIGNALLED},
            {"orphan", read_end, NULL, ORPHAN}};

static void nothing(int signal)
{
    (void)signal;
}

static void start(const struct way *way)
{
    if (way->as < CHILD) {
        pthread_create(&helper, NULL, way->helper, NULL);
    } else if (!(child = fork())) {
        close(end[1]);
        way->helper(NULL);
        usleep(2 * ITEM_US); /* it cleans up */
        exit(0);
    }
}

static void wait_for_end(const struct way *way)
{
    if (way->as == JOINED)
        pthread_join(helper, NULL);
    if (way->as == SIGNALLED)
        sigwaitinfo(&blocked, NULL);
    if (way->as == CHILD || way->as == SIGNALLED)
        waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    const struct way *way = ways;
    while (argc > 1 && strcmp(way->name, argv[1]) != 0)
        way++;
    sem_init(&go, 0, 0);
    told = eventfd(0, 0);
    late = timerfd_create(CLOCK_MONOTONIC, 0);
    if (pipe(end))
        return 1;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = nothing}, NULL);
    start(way);
    work();
    if (way->stop)
        way->stop();
    wait_for_end(way);
    return 0;
}
