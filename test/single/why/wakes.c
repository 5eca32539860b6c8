/*
 * wakes HOW WORKERS ITEMS [loaded]: in each round the WORKERS threads are woken for so many items,
 * of which each takes one at most, in no time. Prints how often they were woken, and how often they
 * found no item then; of "kinds" for each of the two functions. loaded: two more threads compute.
 */
#include "../../prog/program.h"
#include <sys/eventfd.h>

enum { ROUNDS = 200, WORKERS_MOST = 16 };

static int workers, items, event;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static sem_t posts;
static _Atomic bool over;

/* Under mutex. awaited: wake-ups of the round that are still to come, or of epoll its items. */
static int left, round_now, waiting, awaited;
static struct {
    int wakes, vain;
} count[2];

static void note(int kind, bool found)
{
    count[kind].wakes += !over;
    count[kind].vain += !over && !found;
}

/* In the function that uses it: its name is the place. */
#define WAIT_AT_CONDITION(kind, last)            \
    do {                                         \
        pthread_mutex_lock(&mutex);              \
        while (!has_item(kind, last) && !over) { \
            waiting++;                           \
            pthread_cond_wait(&more, &mutex);    \
            waiting--;                           \
            awaited--;                           \
            note(kind, has_item(kind, last));    \
        }                                        \
        left--;                                  \
        *(last) = round_now;                     \
        pthread_mutex_unlock(&mutex);            \
    } while (0)

static bool of_kinds;

static bool has_item(int kind, const int *last)
{
    return left > 0 && *last != round_now && (!of_kinds || round_now % 2 == kind);
}

static __attribute__((noinline)) void take_even(int *last)
{
    WAIT_AT_CONDITION(0, last);
}

static __attribute__((noinline)) void take_odd(int *last)
{
    WAIT_AT_CONDITION(1, last);
}

static void *at_condition(void *arg)
{
    for (int last = 0; !over;) {
        if (of_kinds && (intptr_t)arg % 2)
            take_odd(&last);
        else
            take_even(&last);
    }
    return arg;
}

/* After a wait that is no condition variable's. */
static void take(bool found)
{
    pthread_mutex_lock(&mutex);
    awaited -= found;
    note(0, found);
    pthread_mutex_unlock(&mutex);
}

static void *at_semaphore(void *arg)
{
    while (!over) {
        sem_wait(&posts);
        take(true);
    }
    return arg;
}

/* Each thread has an epoll descriptor of its own for the one eventfd. */
static void *at_epoll(void *arg)
{
    struct epoll_event its = {.events = EPOLLIN};
    uint64_t value;
    int poll = epoll_create1(0);
    its.events |= arg ? EPOLLEXCLUSIVE : 0;
    epoll_ctl(poll, EPOLL_CTL_ADD, event, &its);
    while (!over) {
        epoll_wait(poll, &its, 1, -1);
        take(read(event, &value, sizeof value) == sizeof value);
    }
    return NULL;
}

static void *at_exclusive_epoll(void *arg)
{
    (void)arg;
    return at_epoll(&over);
}

static void *at_shared_epoll(void *arg)
{
    (void)arg;
    return at_epoll(NULL);
}

/* All want the mutex at once, again and again. */
static void *at_mutex(void *arg)
{
    for (int i = 0; i < 10 * ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        for (uint64_t end = cpu_ns() + 20000; cpu_ns() < end;)
            ;
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void broadcast(void)
{
    pthread_cond_broadcast(&more);
    awaited = workers;
}

static void signal_each(void)
{
    for (int i = 0; i < items; i++)
        pthread_cond_signal(&more);
}

static void post_each(void)
{
    for (int i = 0; i < items; i++)
        sem_post(&posts);
}

static void write_events(void)
{
    eventfd_write(event, (uint64_t)items);
}

static const struct way {
    const char *name;
    void *(*worker)(void *arg);
    void (*wake)(void);
} ways[] = {{"broadcast", at_condition, broadcast},
            {"kinds", at_condition, broadcast},
            {"signal", at_condition, signal_each},
            {"semaphore", at_semaphore, post_each},
            {"epoll", at_shared_epoll, write_events},
            {"exclusive", at_exclusive_epoll, write_events},
            {"mutex", at_mutex, NULL}},
  *way = ways;

/* Without a signal of the workers, which would be something that a worker in vain has done. */
static void run_round(void)
{
    for (bool ready = false; !ready;) {
        pthread_mutex_lock(&mutex);
        ready = awaited <= 0 && waiting == (way->worker == at_condition ? workers : 0);
        if (ready) {
            round_now++;
            left = awaited = items;
            way->wake();
        }
        pthread_mutex_unlock(&mutex);
        sched_yield();
    }
}

static void *compute(void *arg)
{
    while (!over)
        ;
    return arg;
}

static void end_workers(const pthread_t *thread)
{
    over = way->wake;
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < workers; i++) {
        sem_post(&posts);
        eventfd_write(event, 1);
    }
    for (int i = 0; i < workers; i++)
        pthread_join(thread[i], NULL);
    over = true;
}

int main(int argc, char **argv)
{
    pthread_t thread[WORKERS_MOST], loads[2];
    bool loaded = argc > 4;
    while (strcmp(way->name, argv[1]) != 0)
        way++;
    workers = atoi(argv[2]);
    items = atoi(argv[3]);
    of_kinds = strcmp(way->name, "kinds") == 0;
    event = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
    for (int i = 0; loaded && i < 2; i++)
        pthread_create(&loads[i], NULL, compute, NULL);
    for (intptr_t i = 0; i < workers; i++)
        pthread_create(&thread[i], NULL, way->worker, (void *)i);
    for (int i = 0; way->wake && i < ROUNDS; i++)
        run_round();
    end_workers(thread);
    for (int i = 0; loaded && i < 2; i++)
        pthread_join(loads[i], NULL);
    for (int i = 0; i < 2; i++)
        printf("%d %d\n", count[i].wakes, count[i].vain);
}
