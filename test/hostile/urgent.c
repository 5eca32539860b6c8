/*
 * Threads of four real-time priorities on one CPU: `urgent <milliseconds>`. The highest one wakes
 * up again and again, wherever that interrupts the others, and makes calls that never wait. Until
 * it sleeps again no other may have run: it says how far they came meanwhile. `urgent end`: it ends
 * the process while another one never sleeps. Exit status 77: there is no right to such priorities.
 */
#include "../prog/program.h"

enum { LOWEST = 10, LOW, MIDDLE, HIGH, MAIN };
enum { ROUNDS = 20, PAUSE_NS = 137000, CALLS = 50 };

static atomic_bool stop;
static atomic_long others; /* what the threads of lower priority have done */
static sem_t sem;          /* the lowest one waits for it */
static int zero;

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){0, ns}, NULL);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *lowest(void *unused)
{
    while (!stop) {
        sem_wait(&sem);
        others++;
    }
    return unused;
}

/* In our hooks as often as can be, and interrupted there. */
static void *low(void *unused)
{
    char c;
    while (!stop) {
        for (int i = 0; i < CALLS; i++) {
            sem_post(&sem);
            if (read(zero, &c, 1) == 1)
                others++;
        }
        pause_ns(PAUSE_NS);
    }
    return unused;
}

/* Runs as soon as the highest one does not. */
static void *middle(void *unused)
{
    while (!stop) {
        for (int i = 0; i < 30000; i++)
            others++;
        pause_ns(2 * PAUSE_NS);
    }
    return unused;
}

static long do_what_never_waits(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    long before = others;
    char c;
    for (int i = 0; i < ROUNDS; i++) {
        sched_yield();
        sem_post(&sem);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        if (read(zero, &c, 1) != 1)
            abort();
    }
    return others - before;
}

static void *high(void *milliseconds)
{
    long done = 0, times = 0;
    for (double end = now_ms() + atof(milliseconds); now_ms() < end; times++) {
        done += do_what_never_waits();
        pause_ns(PAUSE_NS);
    }
    printf("while the highest ran, others did %ld\n", done);
    fprintf(stderr, "%ld times\n", times);
    stop = true;
    sem_post(&sem);
    return NULL;
}

static void *for_ever(void *unused)
{
    for (;;)
        others++;
    return unused;
}

static pthread_t start(int priority, void *(*run)(void *), void *arg)
{
    struct sched_param param = {.sched_priority = priority};
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
    pthread_attr_setschedparam(&attr, &param);
    if ((errno = pthread_create(&thread, &attr, run, arg)) != 0) {
        perror("pthread_create");
        exit(77);
    }
    return thread;
}

int main(int argc, char **argv)
{
    struct sched_param above = {.sched_priority = MAIN};
    if (argc != 2 || stay_on(sched_getcpu()) != 0 ||
        sched_setscheduler(0, SCHED_FIFO, &above) != 0) {
        perror("sched_setscheduler");
        return 77;
    }
    if (strcmp(argv[1], "end") == 0) {
        start(LOW, lowest, NULL);
        pause_ns(200000000); /* the thread that shall run has begun */
        start(MIDDLE, for_ever, NULL);
        pause_ns(1000000);
        return 0;
    }
    zero = open("/dev/zero", O_RDONLY);
    sem_init(&sem, 0, 0);
    pthread_t threads[] = {start(LOWEST, lowest, NULL), start(LOW, low, NULL),
                           start(MIDDLE, middle, NULL), start(HIGH, high, argv[1])};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
