/*
 * Deadlocks, and what only looks like one: deadlocks CASE [N]. Writes the ids of the threads that
 * can never go on, which end with the program, or "none".
 */
#include "program.h"
#include <sys/file.h>
#include <threads.h>

enum { MOST = 16 };

union lock {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    mtx_t mtx;
};

static union lock locks[MOST];
static pthread_barrier_t held;
static pthread_t threads[MOST];
static int n = 2;

/* Kinds of locks ------------------------------------------------------------------------------ */

static void lock_mutex(union lock *lock)
{
    if (pthread_mutex_lock(&lock->mutex) == EDEADLK)
        abort();
}

static void lock_timed(union lock *lock)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 600;
    pthread_mutex_timedlock(&lock->mutex, &end);
}

static void lock_write(union lock *lock)
{
    pthread_rwlock_wrlock(&lock->rwlock);
}

static void lock_mtx(union lock *lock)
{
    mtx_lock(&lock->mtx);
}

static const struct kind {
    const char *name;
    int type, protocol, robust, shared;
    void (*lock)(union lock *lock);
} kinds[] = {
    {"mutex", PTHREAD_MUTEX_NORMAL, 0, 0, 0, lock_mutex},
    {"recursive", PTHREAD_MUTEX_RECURSIVE, 0, 0, 0, lock_mutex},
    {"errorcheck", PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0, lock_mutex},
    {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0, lock_mutex},
    {"inherit", PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, 0, 0, lock_mutex},
    {"robust", PTHREAD_MUTEX_NORMAL, 0, 1, 0, lock_mutex},
    {"shared", PTHREAD_MUTEX_NORMAL, 0, 0, 1, lock_mutex},
    {"timed", PTHREAD_MUTEX_NORMAL, 0, 0, 0, lock_timed},
    {"c11", 0, 0, 0, 0, lock_mtx},
    {"rwlock", 0, 0, 0, 0, lock_write},
};

static const struct kind *kind = kinds;

static void init(union lock *lock)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, kind->type);
    pthread_mutexattr_setprotocol(&a, kind->protocol);
    pthread_mutexattr_setrobust(&a, kind->robust);
    pthread_mutexattr_setpshared(&a, kind->shared);
    if (kind->lock == lock_mtx)
        mtx_init(&lock->mtx, mtx_plain);
    else if (kind->lock == lock_write)
        pthread_rwlock_init(&lock->rwlock, NULL);
    else
        pthread_mutex_init(&lock->mutex, &a);
}

static void say(int tid)
{
    char line[16];
    int size = snprintf(line, sizeof line, "%d\n", tid);
    if (write(1, line, (size_t)size) != size)
        abort();
}

static void say_none(void)
{
    if (write(1, "none\n", 5) != 5)
        abort();
}

/* Cases ---------------------------------------------------------------------------------------- */

static void *philosopher(void *arg)
{
    long i = (long)arg;
    kind->lock(&locks[i]);
    if (kind->lock == lock_timed && i == 0)
        say_none();
    else if (kind->lock != lock_timed)
        say(gettid());
    pthread_barrier_wait(&held);
    kind->lock(&locks[(i + 1) % n]);
    return NULL;
}

static void ring(void)
{
    pthread_barrier_init(&held, NULL, (unsigned)n);
    for (long i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, philosopher, (void *)i);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static void self(void)
{
    say(gettid());
    kind->lock(&locks[0]);
    kind->lock(&locks[0]);
}

static void *take(void *arg)
{
    kind->lock(arg);
    return NULL;
}

/* The holder ends. */
static void ended(void)
{
    pthread_create(&threads[0], NULL, take, &locks[0]);
    pthread_join(threads[0], NULL);
    say(gettid());
    kind->lock(&locks[0]);
}

static void *wait_for_main(void *arg)
{
    say(gettid());
    kind->lock(arg);
    return NULL;
}

/* One holds a lock and joins one that wants it. */
static void join(void)
{
    kind->lock(&locks[0]);
    say(gettid());
    pthread_create(&threads[0], NULL, wait_for_main, &locks[0]);
    pthread_join(threads[0], NULL);
}

static void *read_on(void *arg)
{
    pthread_rwlock_rdlock(arg);
    return NULL;
}

/* Readers wait for a writer, which waits for one of them to end. */
static void readers(void)
{
    pthread_rwlock_wrlock(&locks[0].rwlock);
    say(gettid());
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, read_on, &locks[0].rwlock);
    pthread_join(threads[0], NULL);
}

/* Shared by two processes: a lock, and how many of them have what they need first. */
static union lock *shared_lock(_Atomic int **ready)
{
    union lock *lock =
        mmap(NULL, 2 * sizeof *lock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *ready = (void *)&lock[1];
    init(lock);
    return lock;
}

/* Another process holds it. */
static void elsewhere(void)
{
    _Atomic int *taken;
    union lock *lock = shared_lock(&taken);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        kind->lock(lock);
        *taken = 1;
        usleep(600000000);
    }
    while (!*taken)
        usleep(1000);
    say_none();
    kind->lock(lock);
}

/* Locks on files: each process and thread has opened the files itself. */
static int lock_file(int i)
{
    char path[64];
    snprintf(path, sizeof path, "deadlocks.%d", i);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (flock(fd, LOCK_EX) != 0)
        abort();
    return fd;
}

static void *file_first(void *arg)
{
    lock_file(0);
    say(gettid());
    pthread_barrier_wait(&held);
    kind->lock(&locks[0]);
    return arg;
}

static void *mutex_first(void *arg)
{
    kind->lock(&locks[0]);
    say(gettid());
    pthread_barrier_wait(&held);
    lock_file(0);
    return arg;
}

static void *sleep_on(void *arg)
{
    usleep(600000000);
    return arg;
}

/* Two threads have a file's lock and a mutex. With a third one, which sleeps and may have it, too.
 */
static void file(void)
{
    pthread_barrier_init(&held, NULL, 2);
    pthread_create(&threads[0], NULL, file_first, NULL);
    pthread_create(&threads[1], NULL, mutex_first, NULL);
    if (n > 2)
        pthread_create(&threads[2], NULL, sleep_on, NULL);
    say(getpid());
    pthread_join(threads[0], NULL);
}

static void meet(_Atomic int *ready)
{
    for (++*ready; *ready < 2;)
        usleep(1000);
}

/* Another process has the file's lock, and waits for a mutex in shared memory. */
static void file_elsewhere(void)
{
    _Atomic int *ready;
    union lock *lock = shared_lock(&ready);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        lock_file(0);
        meet(ready);
        kind->lock(lock);
    }
    kind->lock(lock);
    say(gettid());
    meet(ready);
    lock_file(0);
}

static void (*with_lock)(int fd); /* what the other process does then */

/* Two processes have a file's lock each; with n = 3 the other one does not wait for ours. */
static void files(void)
{
    _Atomic int *ready;
    shared_lock(&ready);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = lock_file(1);
        if (with_lock)
            with_lock(fd);
        meet(ready);
        if (n > 2)
            usleep(600000000);
        lock_file(0);
    }
    lock_file(0);
    say(gettid());
    meet(ready);
    lock_file(1);
}

/* Leaves the lock to a child. */
static void leave(int fd)
{
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        usleep(600000000);
    }
    close(fd);
}

static void files_left(void)
{
    with_lock = leave;
    files();
}

static void ignore(int signal)
{
    (void)signal;
}

static void set_alarm(int fd)
{
    (void)fd;
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = ignore}, NULL);
    alarm(600);
}

static void set_timer(int fd)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    (void)fd;
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ignore}, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        abort();
    timer_settime(timer, 0, &(struct itimerspec){.it_value.tv_sec = 600}, NULL);
}

static void files_alarm(void)
{
    with_lock = set_alarm;
    files();
}

static void files_timer(void)
{
    with_lock = set_timer;
    files();
}

static void file_alarm(void)
{
    set_alarm(-1);
    file();
}

static void *lock_second(void *arg)
{
    lock_file(1);
    return arg;
}

/* Each of two threads waits for a lock that another process has; writes the ids of these. */
static void files_apart(void)
{
    _Atomic int *ready;
    shared_lock(&ready);
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            lock_file(i);
            ++*ready;
            usleep(600000000);
        }
        say(pid);
    }
    while (*ready < 2)
        usleep(1000);
    pthread_create(&threads[0], NULL, lock_second, NULL);
    lock_file(0);
}

/* One that says who it is, and stays for long. */
static void fork_and_stay(void (*child)(void))
{
    if (fork() == 0) {
        say(getpid());
        child();
    }
    usleep(600000000);
}

static void keep_from(void)
{
    pthread_create(&threads[0], NULL, take, &locks[0]);
    usleep(600000000);
}

/* Forked by a thread that holds it: the child's first thread has it, and may give it back. */
static void *fork_with_it(void *arg)
{
    kind->lock(arg);
    fork_and_stay(keep_from);
    return NULL;
}

static void heir(void)
{
    pthread_create(&threads[0], NULL, fork_with_it, &locks[0]);
    pthread_join(threads[0], NULL);
}

static void *take_and_stay(void *arg)
{
    kind->lock(arg);
    pthread_barrier_wait(&held);
    usleep(600000000);
    return NULL;
}

static void want(void)
{
    kind->lock(&locks[0]);
}

/* Another thread than the one that forks holds it: in the child nobody does. */
static void left(void)
{
    pthread_barrier_init(&held, NULL, 2);
    pthread_create(&threads[0], NULL, take_and_stay, &locks[0]);
    pthread_barrier_wait(&held);
    fork_and_stay(want);
}

static void unlock(union lock *lock)
{
    if (kind->lock == lock_write)
        pthread_rwlock_unlock(&lock->rwlock);
    else
        pthread_mutex_unlock(&lock->mutex);
}

static bool try(union lock *lock)
{
    return kind->lock == lock_write ? pthread_rwlock_trywrlock(&lock->rwlock) == 0
                                    : pthread_mutex_trylock(&lock->mutex) == 0;
}

/* All in one order, each held for long; and some that give up and try again. */
static void *work(void *arg)
{
    struct timespec ms = {0, 2000000};
    for (unsigned turn = (unsigned)(long)arg;; turn++) {
        union lock *first = &locks[turn % (unsigned)(n - 1)], *second = first + 1;
        kind->lock(first);
        nanosleep(&ms, NULL);
        kind->lock(second);
        nanosleep(&ms, NULL);
        unlock(first);
        while (!try(first)) {
            unlock(second);
            sched_yield();
            kind->lock(second);
        }
        unlock(first);
        unlock(second);
    }
    return NULL;
}

static void slow(void)
{
    say_none();
    for (long i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_join(threads[0], NULL);
}

static pthread_cond_t work_to_do = PTHREAD_COND_INITIALIZER, all_there = PTHREAD_COND_INITIALIZER;
static int there;

static void *idle(void *arg)
{
    pthread_mutex_lock(&locks[0].mutex);
    if (++there == n)
        pthread_cond_signal(&all_there);
    pthread_cond_wait(&work_to_do, &locks[0].mutex);
    return arg;
}

/* Threads that have nothing to do. */
static void crowd(void)
{
    for (int i = 0; i < n; i++)
        pthread_create(&threads[0], NULL, idle, NULL);
    pthread_mutex_lock(&locks[0].mutex);
    while (there < n)
        pthread_cond_wait(&all_there, &locks[0].mutex);
    pthread_mutex_unlock(&locks[0].mutex);
    say_none();
    pthread_join(threads[0], NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"ring", ring},
             {"self", self},
             {"ended", ended},
             {"join", join},
             {"readers", readers},
             {"elsewhere", elsewhere},
             {"slow", slow},
             {"crowd", crowd},
             {"heir", heir},
             {"left", left},
             {"file", file},
             {"file_elsewhere", file_elsewhere},
             {"files", files},
             {"files_left", files_left},
             {"files_alarm", files_alarm},
             {"files_timer", files_timer},
             {"file_alarm", file_alarm},
             {"files_apart", files_apart}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, argv[2]) == 0)
            kind = &kinds[i];
    }
    n = argc > 3 ? atoi(argv[3]) : 2;
    for (int i = 0; i < MOST; i++)
        init(&locks[i]);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0)
            cases[i].run();
    }
    return 1;
}
