/*
 * Three processes that end each other's waits at what stands in memory that they share: without a
 * name, and a file's that each has at another address, with a robust mutex. No thread is woken
 * before libc's own word says that all waiters wait. Prints for each wait whose it was, its waker,
 * and between which times, by CLOCK_MONOTONIC: "wait KIND MEMORY <thread> <thread> <ns> <ns>".
 * And leaves logs "clock" that say what that is.
 *
 * Where two wait for one semaphore it is not known who ended which wait: "wait two ...". Where two
 * wait for a mutex the first one wakes the other: "wait chain ..."; likewise "wait writers ...".
 */
#include "truth.h"

#include "../../preload/gotrace.h"

enum { PROCESSES = 3, MEMORIES = 2, ROUNDS = 3, NOBODY = -1 };

struct place { /* where they wait */
    sem_t sem;
    pthread_mutex_t mutex, guard;
    pthread_cond_t cond;
    pthread_rwlock_t rwlock;
    pthread_barrier_t two, three; /* of so many */
    bool come;                    /* the awaited value at cond */
    _Atomic int waker;
    _Atomic uint64_t woke; /* just before that */
};

static struct course {
    _Atomic int thread[PROCESSES], in_step[PROCESSES];
} * course;

static struct place *place;
static int self;

/* Kinds of waits ------------------------------------------------------------------------------ */

static void about_to_wake(void)
{
    place->waker = tid();
    place->woke = now();
}

DO(wait_sem, sem_wait(&place->sem))

static void wake_sem(int waiters)
{
    for (int i = 0; i < waiters; i++) {
        about_to_wake();
        sem_post(&place->sem);
    }
}

/* See preload/waits/shared.h. */
static int waiters_of_sem(void)
{
    return (int)(*(volatile uint64_t *)&place->sem >> 32);
}

/* Has it, and gives it to the next one. */
DO(wait_mutex, pthread_mutex_lock(&place->mutex))

static void wake_mutex(int waiters)
{
    (void)waiters;
    about_to_wake();
    pthread_mutex_unlock(&place->mutex);
}

/* That there is one; a thread that is seen asleep besides waits there, too. A robust one's is the
 * kernel's.
 */
static int waiters_of_mutex(void)
{
    int word = *(volatile int *)&place->mutex.__data.__lock;
    return word == 2 || word < 0 ? PROCESSES : 0;
}

static void wait_cond(void)
{
    pthread_mutex_lock(&place->guard);
    while (!place->come)
        pthread_cond_wait(&place->cond, &place->guard);
    pthread_mutex_unlock(&place->guard);
}

static void come(void)
{
    pthread_mutex_lock(&place->guard);
    place->come = true;
    pthread_mutex_unlock(&place->guard);
    about_to_wake();
}

static void wake_cond(int waiters)
{
    (void)waiters;
    come();
    pthread_cond_signal(&place->cond);
}

static void wake_all(int waiters)
{
    (void)waiters;
    come();
    pthread_cond_broadcast(&place->cond);
}

static int waiters_of_cond(void)
{
    return (int)(*(volatile unsigned *)&place->cond.__data.__wrefs >> 3);
}

DO(read_lock, pthread_rwlock_rdlock(&place->rwlock))
DO(write_lock, pthread_rwlock_wrlock(&place->rwlock))

static void wake_rwlock(int waiters)
{
    (void)waiters;
    about_to_wake();
    pthread_rwlock_unlock(&place->rwlock);
}

/* Several readers that one writer has woken. */
static void leave_rwlock(int waiters)
{
    (void)waiters;
    pthread_rwlock_unlock(&place->rwlock);
}

/* All readers behind a writer; else that there is a writer. */
static int waiters_of_rwlock(void)
{
    unsigned readers = *(volatile unsigned *)&place->rwlock.__data.__readers;
    unsigned writers = *(volatile unsigned *)&place->rwlock.__data.__writers_futex;
    bool written = readers & 1;
    if (written && !(writers & 2))
        return (int)(readers >> 3);
    return written || readers & 2 ? PROCESSES : 0;
}

DO(wait_two, pthread_barrier_wait(&place->two))
DO(wait_three, pthread_barrier_wait(&place->three))

static void arrive(int waiters)
{
    about_to_wake();
    if (waiters == 1)
        wait_two();
    else
        wait_three();
}

/* How many have come, less when the round began. */
static int waiters_of(pthread_barrier_t *barrier)
{
    volatile unsigned *words = (volatile unsigned *)barrier;
    return (int)(words[0] - words[1]);
}

static int waiters_of_two(void)
{
    return waiters_of(&place->two);
}

static int waiters_of_three(void)
{
    return waiters_of(&place->three);
}

static const struct step {
    const char *kind;
    void (*wait)(void), (*wake)(int waiters);
    int (*waiters)(void);
    int waker, waiter, other;  /* processes; other: waits, too */
    void (*take)(void);        /* by the waker, before; NULL: nothing */
    void (*give)(int waiters); /* by the process that has waited; NULL: nothing */
} steps[] = {
    {"sem", wait_sem, wake_sem, waiters_of_sem, 0, 1, NOBODY, NULL, NULL},
    {"sem", wait_sem, wake_sem, waiters_of_sem, 1, 2, NOBODY, NULL, NULL},
    {"mutex", wait_mutex, wake_mutex, waiters_of_mutex, 0, 1, NOBODY, wait_mutex, wake_mutex},
    {"chain", wait_mutex, wake_mutex, waiters_of_mutex, 1, 0, 2, wait_mutex, wake_mutex},
    {"cond", wait_cond, wake_cond, waiters_of_cond, 0, 2, NOBODY, NULL, NULL},
    {"cond", wait_cond, wake_cond, waiters_of_cond, 2, 1, NOBODY, NULL, NULL},
    {"all", wait_cond, wake_all, waiters_of_cond, 0, 1, 2, NULL, NULL},
    {"two", wait_sem, wake_sem, waiters_of_sem, 0, 1, 2, NULL, NULL},
    {"read", read_lock, wake_rwlock, waiters_of_rwlock, 0, 2, NOBODY, write_lock, leave_rwlock},
    {"read", read_lock, wake_rwlock, waiters_of_rwlock, 1, 0, 2, write_lock, leave_rwlock},
    {"write", write_lock, wake_rwlock, waiters_of_rwlock, 2, 1, NOBODY, read_lock, leave_rwlock},
    {"writers", write_lock, wake_rwlock, waiters_of_rwlock, 0, 1, 2, write_lock, wake_rwlock},
    {"barrier", wait_two, arrive, waiters_of_two, 0, 1, NOBODY, NULL, NULL},
    {"barrier", wait_three, arrive, waiters_of_three, 1, 2, 0, NULL, NULL},
};
enum { STEPS = sizeof steps / sizeof *steps };

/* Steps --------------------------------------------------------------------------------------- */

/* Returns when all have called it so often. A thread with nothing to do leaves the CPU to others.
 */
static void come_together(void)
{
    const struct timespec while_others_work = {.tv_nsec = 300000};
    int step = ++course->in_step[self];
    for (int i = 0; i < PROCESSES; i++) {
        while (course->in_step[i] < step)
            RAW(SYS_nanosleep, &while_others_work, NULL);
    }
}

static void run_waiter(const struct step *s, const char *memory)
{
    course->thread[self] = tid();
    s->wait();
    uint64_t end = now();
    int waker = place->waker;
    uint64_t woke = place->woke;
    if (s->give)
        s->give(0);
    dprintf(1, "wait %s %s %d %d %llu %llu\n", s->kind, memory, tid(), waker,
            (unsigned long long)woke, (unsigned long long)end);
}

static void run_waker(const struct step *s)
{
    int waiters = 1 + (s->other != NOBODY);
    while (s->waiters() < waiters)
        busy(20000);
    until_asleep(&course->thread[s->waiter]);
    if (s->other != NOBODY)
        until_asleep(&course->thread[s->other]);
    s->wake(waiters);
}

static void run_step(const struct step *s, const char *memory)
{
    place->come = false;
    course->thread[self] = 0;
    if (self == s->waker && s->take)
        s->take();
    come_together();
    if (self == s->waker)
        run_waker(s);
    else if (self == s->waiter || self == s->other)
        run_waiter(s, memory);
    come_together();
}

static void *help(void *unused)
{
    return unused;
}

/* More than once: it may take its time. */
static void tell_clock(void)
{
    char text[24];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)now());
        gotrace_log(0, "clock", text);
    }
}

static void run(struct place *const places[MEMORIES])
{
    static const char *const names[MEMORIES] = {"nameless", "file"};
    pthread_t helper;
    pthread_create(&helper, NULL, help, NULL); /* the process is recorded from here on */
    pthread_join(helper, NULL);
    tell_clock();
    for (int i = 0; i < ROUNDS * STEPS * MEMORIES; i++) {
        place = places[i % MEMORIES];
        run_step(&steps[i / MEMORIES % STEPS], names[i % MEMORIES]);
    }
}

/* Memory -------------------------------------------------------------------------------------- */

static void *map_shared(int fd, size_t size)
{
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

/* Elsewhere than others have it. */
static struct place *map_file(int fd)
{
    enum { PAGE = 4096 };
    map_shared(-1, (size_t)(1 + self) * 16 * PAGE);
    return map_shared(fd, sizeof(struct place));
}

static void set_up(struct place *at, bool robust)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_rwlockattr_t rwlock;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&at->guard, &mutex);
    if (robust)
        pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&at->mutex, &mutex);
    pthread_cond_init(&at->cond, &cond);
    sem_init(&at->sem, 1, 0);
    pthread_rwlockattr_init(&rwlock);
    pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
    pthread_rwlock_init(&at->rwlock, &rwlock);
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&at->two, &barrier, 2);
    pthread_barrier_init(&at->three, &barrier, 3);
}

int main(void)
{
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), sizeof(struct place)) != 0)
        return 1;
    course = map_shared(-1, sizeof *course);
    struct place *nameless = map_shared(-1, sizeof *nameless), *named;
    for (self = PROCESSES - 1; self > 0 && fork() != 0; self--)
        ;
    named = map_file(fileno(file));
    if (self == 0) {
        set_up(nameless, false);
        set_up(named, true);
    }
    come_together();
    run((struct place *const[MEMORIES]){nameless, named});
    while (self == 0 && wait(NULL) > 0)
        ;
    return 0;
}
