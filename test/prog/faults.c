/*
 * Programs with a fault that `gotrace why` is to name, and such that only look alike: faults NAME
 * [like]. The threads' waits are alike; but all of it is off the critical path, or as it
 * should be.
 *
 * A device is a sleep: it takes the same time on any machine. A CPU is taken away by a process that
 * computes on it most of the time; the thread that shall lack it has a lower priority.
 */
#include "program.h"

enum { MS = 1000 };

static bool like;
static volatile bool over;

/* In the function that uses it: its name is the place. */
#define DEVICE(us)                                                          \
    do {                                                                    \
        struct timespec length_ = {(us) / 1000000, (us) % 1000000 * 1000L}; \
        clock_nanosleep(CLOCK_MONOTONIC, 0, &length_, NULL);                \
    } while (0)

static void compute(uint64_t us)
{
    uint64_t end = cpu_ns() + us * 1000;
    while (cpu_ns() < end)
        ;
}

static pthread_t begin(void *(*routine)(void *), intptr_t arg)
{
    pthread_t thread;
    pthread_create(&thread, NULL, routine, (void *)arg);
    return thread;
}

static void run_threads(int n, void *(*routine)(void *))
{
    pthread_t thread[16];
    for (intptr_t i = 0; i < n; i++)
        thread[i] = begin(routine, i);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

/* The threads' time is the run's; or they work beside the main thread, which waits for a device. */
static void run_on_path(int n, void *(*routine)(void *))
{
    if (!like)
        run_threads(n, routine);
    for (int i = 0; like && i < n; i++)
        begin(routine, i);
    DEVICE(like ? 300 * MS : 0);
}

/* CPUs ----------------------------------------------------------------------------------------- */

/* The first that there is. */
static void stay_on_cpu(void)
{
    cpu_set_t set;
    int cpu = 0;
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    stay_on(cpu);
}

/* Before there are threads. It ends with its parent. */
static void take_cpu(void)
{
    if (fork() != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on_cpu();
    for (;;) {
        compute(4 * MS);
        usleep(1 * MS);
    }
}

/* A batch job that is woken takes no other thread's CPU away. */
static void step_back(void)
{
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    setpriority(PRIO_PROCESS, 0, 5);
    stay_on_cpu();
    DEVICE(30 * MS); /* from when on it is watched */
}

static void *ticker(void *arg)
{
    step_back();
    for (int i = 0; i < 400; i++)
        DEVICE(200);
    return arg;
}

static void slow_wakeup(void)
{
    take_cpu();
    run_on_path(1, ticker);
}

static void *calculator(void *arg)
{
    step_back();
    for (int i = 0; i < 120; i++)
        compute(1 * MS);
    return arg;
}

static void preempted(void)
{
    take_cpu();
    run_on_path(1, calculator);
}

static void *one_of_many(void *arg)
{
    stay_on_cpu();
    DEVICE(30 * MS);
    for (int i = 0; i < 20; i++)
        compute(3 * MS);
    return arg;
}

static void oversubscription(void)
{
    run_on_path(8, one_of_many);
}

/* Waits ---------------------------------------------------------------------------------------- */

/* One item, and all are woken for it; or one for each. */
static pthread_mutex_t herd_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t herd_called = PTHREAD_COND_INITIALIZER;
static int items;

enum { HERD = 6, CALLS = 60 };

static void *grazer(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&herd_lock);
        while (!items && !over)
            pthread_cond_wait(&herd_called, &herd_lock);
        bool got = items > 0;
        items -= got;
        pthread_mutex_unlock(&herd_lock);
        if (!got)
            return arg;
        DEVICE(2 * MS);
    }
}

static void thundering_herd(void)
{
    pthread_t thread[HERD];
    for (int i = 0; i < HERD; i++)
        thread[i] = begin(grazer, 0);
    for (int i = 0; i <= CALLS; i++) {
        DEVICE(5 * MS);
        pthread_mutex_lock(&herd_lock);
        items += like ? HERD : 1;
        over = i == CALLS;
        pthread_cond_broadcast(&herd_called);
        pthread_mutex_unlock(&herd_lock);
    }
    for (int i = 0; i < HERD; i++)
        pthread_join(thread[i], NULL);
}

/* A pool of which one at a time does something; or most of it does. */
enum { RING = 4 };
static sem_t turn[RING];

static void in_turn(intptr_t i)
{
    sem_wait(&turn[i]);
    DEVICE(1 * MS);
    sem_post(&turn[(i + 1) % RING]);
}

static void *ring_worker(void *arg)
{
    for (int i = 0; i < 25; i++) {
        DEVICE(like ? 8 * MS : 1);
        in_turn((intptr_t)arg);
    }
    return NULL;
}

static void serialised_pool(void)
{
    for (int i = 0; i < RING; i++)
        sem_init(&turn[i], 0, i == 0);
    run_threads(RING, ring_worker);
}

/* Who yields because nothing is there yet, and who yields because it is polite. */
static void *late(void *arg)
{
    DEVICE(100 * MS);
    over = true;
    return arg;
}

static void spin(void)
{
    while (!over) {
        if (like)
            compute(2 * MS);
        sched_yield();
    }
}

static void busy_waiting(void)
{
    pthread_t thread = begin(late, 0);
    spin();
    pthread_join(thread, NULL);
}

/* Signals that nobody waits for are as it should be, where who waits looks first. */
static pthread_mutex_t part_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t part_done = PTHREAD_COND_INITIALIZER;
static int parts;

static void *part_maker(void *arg)
{
    for (int i = 0; i < 12; i++) {
        DEVICE(i < 10 ? 1 * MS : 3000 * MS);
        pthread_mutex_lock(&part_lock);
        parts++;
        pthread_cond_signal(&part_done);
        pthread_mutex_unlock(&part_lock);
    }
    return arg;
}

static void no_lost_wakeup(void)
{
    pthread_t thread = begin(part_maker, 0);
    DEVICE(100 * MS);
    pthread_mutex_lock(&part_lock);
    while (parts < 12)
        pthread_cond_wait(&part_done, &part_lock);
    pthread_mutex_unlock(&part_lock);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } faults[] = {{"slow_wakeup", slow_wakeup},           {"preempted", preempted},
                  {"oversubscription", oversubscription}, {"thundering_herd", thundering_herd},
                  {"serialised_pool", serialised_pool},   {"busy_waiting", busy_waiting},
                  {"no_lost_wakeup", no_lost_wakeup}};
    like = argc > 2 && strcmp(argv[2], "like") == 0;
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0}); /* whatever the tests have */
    setpriority(PRIO_PROCESS, 0, 0);
    for (size_t i = 0; argc > 1 && i < sizeof faults / sizeof *faults; i++) {
        if (strcmp(argv[1], faults[i].name) == 0) {
            faults[i].run();
            return 0;
        }
    }
    return 2;
}
