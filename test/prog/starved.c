/*
 * starved WAY: a thread of the lowest priority, on one CPU with two that compute for 3 s or, on a
 * busy machine, until it has waited five times, waits for 5 ms again and again in the way that is
 * named. Each wait is over after 5 ms; from then on the thread lacks a CPU. Prints how often it has
 * waited, and in how many of these waits it gave up its CPU more than once: the kernel makes it
 * wait for something else too, such as a page.
 */
#include "program.h"
#include <threads.h>

enum { WAIT_MS = 5, RUN_MS = 3000, LEAST_WAITS = 5 };

static int nothing_comes[2], epoll;
static sem_t no_token;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nothing_changes = PTHREAD_COND_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t nothing_changes_in_c11;
static long end_ms;
static atomic_bool over;

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void by_nanosleep(void)
{
    nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000}, NULL);
}

static void by_usleep(void)
{
    usleep(WAIT_MS * 1000);
}

static void by_poll(void)
{
    poll(&(struct pollfd){.fd = nothing_comes[0], .events = POLLIN}, 1, WAIT_MS);
}

static void by_epoll_wait(void)
{
    struct epoll_event event;
    epoll_wait(epoll, &event, 1, WAIT_MS);
}

static void by_select(void)
{
    fd_set in;
    FD_ZERO(&in);
    FD_SET(nothing_comes[0], &in);
    select(nothing_comes[0] + 1, &in, NULL, NULL, &(struct timeval){.tv_usec = WAIT_MS * 1000});
}

static void by_sem_timedwait(void)
{
    struct timespec until = after(CLOCK_REALTIME, WAIT_MS * 1000000);
    sem_timedwait(&no_token, &until);
}

static void by_mutex_timedlock(void)
{
    struct timespec until = after(CLOCK_REALTIME, WAIT_MS * 1000000);
    pthread_mutex_timedlock(&held, &until);
}

static void by_cond_timedwait(void)
{
    struct timespec until = after(CLOCK_REALTIME, WAIT_MS * 1000000);
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&nothing_changes, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void by_cond_clockwait(void)
{
    struct timespec until = after(CLOCK_MONOTONIC, WAIT_MS * 1000000);
    pthread_mutex_lock(&mutex);
    pthread_cond_clockwait(&nothing_changes, &mutex, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&mutex);
}

static void by_cnd_timedwait(void)
{
    struct timespec until = after(CLOCK_REALTIME, WAIT_MS * 1000000);
    mtx_lock(&c11_mutex);
    cnd_timedwait(&nothing_changes_in_c11, &c11_mutex, &until);
    mtx_unlock(&c11_mutex);
}

static const struct way {
    const char *name;
    void (*wait)(void);
} ways[] = {{"nanosleep", by_nanosleep},
            {"usleep", by_usleep},
            {"poll", by_poll},
            {"epoll_wait", by_epoll_wait},
            {"select", by_select},
            {"sem_timedwait", by_sem_timedwait},
            {"pthread_mutex_timedlock", by_mutex_timedlock},
            {"pthread_cond_timedwait", by_cond_timedwait},
            {"pthread_cond_clockwait", by_cond_clockwait},
            {"cnd_timedwait", by_cnd_timedwait}},
  *way;

/* How often the calling thread has given up its CPU. */
static long waits_so_far(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void *starve(void *arg)
{
    struct sched_param none = {0};
    int n = 0, more_than_one = 0;
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    for (; now_ms() < end_ms || n < LEAST_WAITS; n++) {
        long before = waits_so_far();
        way->wait();
        more_than_one += waits_so_far() - before > 1;
    }
    over = true;
    printf("%d %d\n", n, more_than_one);
    return arg;
}

static void *compute(void *arg)
{
    while (!over)
        ;
    return arg;
}

/* To the last CPU that we may use. */
static void stay_on_one_cpu(void)
{
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    int cpu = CPU_SETSIZE - 1;
    while (!CPU_ISSET(cpu, &all))
        cpu--;
    stay_on(cpu);
}

int main(int argc, char **argv)
{
    pthread_t starved;
    struct epoll_event event = {.events = EPOLLIN};
    for (way = ways; argc == 2 && strcmp(way->name, argv[1]) != 0;)
        way++;
    if (pipe(nothing_comes) != 0 || (epoll = epoll_create1(0)) < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, nothing_comes[0], &event) != 0)
        return 2;
    sem_init(&no_token, 0, 0);
    pthread_mutex_lock(&held);
    mtx_init(&c11_mutex, mtx_plain);
    cnd_init(&nothing_changes_in_c11);
    stay_on_one_cpu();
    end_ms = now_ms() + RUN_MS;
    pthread_create(&starved, NULL, starve, NULL);
    RUN_THREADS(2, compute, NULL);
    pthread_join(starved, NULL);
    return 0;
}
