/*
 * Waits and sleeps whose time is over before they begin, on a CPU that another thread uses, too.
 * The kernel puts none of them to sleep. Prints of each kind how often the thread lost the CPU in
 * one.
 */
#include "../../prog/program.h"
#include <linux/futex.h>
#include <threads.h>
enum { LOSSES = 8, ROUNDS = 50000 };
static volatile int over, word;
static sem_t sem;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static const struct timespec past = {1, 0};
static void *burn(void *arg)
{
    while (!over)
        ;
    return arg;
}
static void *hold(void *arg)
{
    pthread_mutex_lock(&held);
    pthread_rwlock_wrlock(&lock);
    return arg;
}
DO(of_pthread_cond_timedwait, pthread_cond_timedwait(&cond, &own, &past))
DO(of_sem_timedwait, sem_timedwait(&sem, &past))
DO(of_pthread_mutex_clocklock, pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &past))
DO(of_mtx_timedlock, mtx_timedlock((mtx_t *)&held, &past))
DO(of_pthread_rwlock_timedrdlock, pthread_rwlock_timedrdlock(&lock, &past))
static void of_futex(void)
{
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, FUTEX_BITSET_MATCH_ANY);
}
DO(of_clock_nanosleep, clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL))
int main(void)
{
    static const struct {
        const char *name;
        void (*wait)(void);
    } waits[] = {{"pthread_cond_timedwait", of_pthread_cond_timedwait},
                 {"sem_timedwait", of_sem_timedwait},
                 {"pthread_mutex_clocklock", of_pthread_mutex_clocklock},
                 {"mtx_timedlock", of_mtx_timedlock},
                 {"pthread_rwlock_timedrdlock", of_pthread_rwlock_timedrdlock},
                 {"futex", of_futex},
                 {"clock_nanosleep", of_clock_nanosleep}};
    pthread_t t, holder;
    stay_on(sched_getcpu());
    sem_init(&sem, 0, 0);
    pthread_create(&holder, NULL, hold, NULL);
    pthread_join(holder, NULL); /* which then hold for ever */
    pthread_create(&t, NULL, burn, NULL);
    pthread_mutex_lock(&own);
    for (unsigned w = 0; w < sizeof waits / sizeof *waits; w++) {
        int lost = 0;
        for (int i = 0; i < ROUNDS && lost < LOSSES; i++) {
            long from = now_ns();
            waits[w].wait();
            lost += now_ns() - from > 1000000;
        }
        printf("%s %d\n", waits[w].name, lost);
    }
    over = 1;
    pthread_join(t, NULL);
    return 0;
}
