/*
 * starved WAY: a thread of the lowest priority, on one CPU with two that compute for 3 s, waits for
 * 5 ms again and again in the way that is named. Each wait is over after 5 ms; from then on the
 * thread lacks a CPU. Prints how often it has waited.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 5, RUN_MS = 3000 };

static int nothing_comes[2], epoll;
static sem_t no_token;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nothing_changes = PTHREAD_COND_INITIALIZER;
static mtx_t c11_mutex;
static cnd_t nothing_changes_in_c11;
static long end_ms;

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct timespec later_by(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += WAIT_MS * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static struct timespec later(void)
{
    return later_by(CLOCK_REALTIME);
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
    struct timespec until = later();
    sem_timedwait(&no_token, &until);
}

static void by_mutex_timedlock(void)
{
    struct timespec until = later();
    pthread_mutex_timedlock(&held, &until);
}

static void by_cond_timedwait(void)
{
    struct timespec until = later();
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&nothing_changes, &mutex, &until);
    pthread_mutex_unlock(&mutex);
}

static void by_cond_clockwait(void)
{
    struct timespec until = later_by(CLOCK_MONOTONIC);
    pthread_mutex_lock(&mutex);
    pthread_cond_clockwait(&nothing_changes, &mutex, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&mutex);
}

static void by_cnd_timedwait(void)
{
    struct timespec until = later();
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

static void *starve(void *arg)
{
    struct sched_param none = {0};
    int n = 0;
    pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
    for (; now_ms() < end_ms; n++)
        way->wait();
    printf("%d\n", n);
    return arg;
}

static void *compute(void *arg)
{
    while (now_ms() < end_ms)
        ;
    return arg;
}

/* To the last CPU that we may use. */
static void stay_on_one_cpu(void)
{
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    int cpu = CPU_SETSIZE - 1;
    while (!CPU_ISSET(cpu, &all))
        cpu--;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    pthread_t starved, busy[2];
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
    for (int i = 0; i < 2; i++)
        pthread_create(&busy[i], NULL, compute, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(busy[i], NULL);
    pthread_join(starved, NULL);
    return 0;
}
