/*
 * Sleeps and timeouts of 4 ms on a CPU that three others use. Prints of each kind by how much it
 * was late in all, and how long it lacked the CPU.
 */
#include "../../prog/program.h"
#include <linux/futex.h>
#include <threads.h>
enum { NS = 4000000, ROUNDS = 40 };
static volatile int over, word;
static sem_t sem;
static int epoll;
static struct timespec time_of(long ns)
{
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}
static long preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}
static void *burn(void *arg)
{
    while (!over)
        ;
    return arg;
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *hold(void *arg)
{
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&lock);
    return arg;
}
static void of_usleep(void)
{
    usleep(NS / 1000);
}
static void of_nanosleep(void)
{
    struct timespec t = time_of(NS);
    nanosleep(&t, NULL);
}
static void of_clock_nanosleep(void)
{
    struct timespec t = time_of(now_ns() + NS);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}
static void of_poll(void)
{
    poll(NULL, 0, NS / 1000000);
}
static void of_epoll_wait(void)
{
    struct epoll_event e;
    epoll_wait(epoll, &e, 1, NS / 1000000);
}
static void of_sem_timedwait(void)
{
    struct timespec t = time_of(clock_ns(CLOCK_REALTIME) + NS);
    sem_timedwait(&sem, &t);
}
static void of_pthread_mutex_clocklock(void)
{
    struct timespec t = time_of(now_ns() + NS);
    pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &t);
}
static void of_mtx_timedlock(void)
{
    struct timespec t = time_of(clock_ns(CLOCK_REALTIME) + NS);
    mtx_timedlock((mtx_t *)&mutex, &t);
}
static void of_pthread_rwlock_timedrdlock(void)
{
    struct timespec t = time_of(clock_ns(CLOCK_REALTIME) + NS);
    pthread_rwlock_timedrdlock(&lock, &t);
}
static void of_select(void)
{
    select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = NS / 1000});
}
static void of_futex(void)
{
    struct timespec t = time_of(NS);
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
}
int main(void)
{
    static const struct {
        const char *name;
        void (*wait)(void);
    } waits[] = {{"usleep", of_usleep},
                 {"nanosleep", of_nanosleep},
                 {"clock_nanosleep", of_clock_nanosleep},
                 {"poll", of_poll},
                 {"epoll_wait", of_epoll_wait},
                 {"select", of_select},
                 {"sem_timedwait", of_sem_timedwait},
                 {"pthread_mutex_clocklock", of_pthread_mutex_clocklock},
                 {"mtx_timedlock", of_mtx_timedlock},
                 {"pthread_rwlock_timedrdlock", of_pthread_rwlock_timedrdlock},
                 {"futex", of_futex}};
    enum { N = sizeof waits / sizeof *waits };
    pthread_t t[3], holder;
    stay_on(sched_getcpu());
    sem_init(&sem, 0, 0);
    epoll = epoll_create1(0);
    pthread_create(&holder, NULL, hold, NULL);
    pthread_join(holder, NULL); /* which then hold for ever */
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, burn, NULL);
    /*
     * The kernel looks whose turn it is while a thread reads its CPU time. The time of that look
     * counts for the former kind, whose stack is the last one that is known.
     */
    long late[N] = {0}, slept[N] = {0}, since[N + 1], used[N + 1], before = preemptions();
    for (unsigned w = 0; w < N; w++) {
        used[w] = cpu_ns();
        since[w] = now_ns();
        for (int i = 0; i < ROUNDS; i++) {
            long from = now_ns();
            waits[w].wait();
            long took = now_ns() - from - NS;
            late[w] += took > 0 ? took : 0;
            /* Else it may have waited for a CPU while its time went by already. */
            slept[w] += before == preemptions() ? NS : 0;
            volatile long spent = 0;
            while (spent++ < 3000000) /* so that its next turn is not at once */
                ;
            before = preemptions();
        }
    }
    used[N] = cpu_ns();
    since[N] = now_ns();
    for (unsigned w = 0; w < N; w++)
        printf("%s %ld %ld\n", waits[w].name, late[w],
               since[w + 1] - since[w] - (used[w + 1] - used[w]) - slept[w]);
    over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}
