/*
 * Threads that stand in waits when somebody attaches. A line of standard input lets those go on
 * whose names do not begin with `ever_`, one after the other; each computes for a while then, calls
 * nothing, and only after that a function that is traced (then_quit: never). At the end of standard
 * input a line for each says how long it had computed, in us; the others stand where they stood.
 */
#include "program.h"

enum { COMPUTES_US = 30000, SIGNALS = 10 };

static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER, passed = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, soon = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static sem_t none, one, last, handled;
static int silent[2], spoken[2], silent_epoll, spoken_epoll;
static bool ready;

static int take(pthread_mutex_t *mutex)
{
    return pthread_mutex_lock(mutex) || pthread_mutex_unlock(mutex);
}

static int await(pthread_cond_t *cond)
{
    pthread_mutex_lock(&guard);
    while (cond == &never || !ready)
        pthread_cond_wait(cond, &guard);
    return pthread_mutex_unlock(&guard);
}

static int get(int fd)
{
    char c;
    return read(fd, &c, 1) != 1;
}

static int poll_by(int epoll)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, -1) != 1;
}

static int ever_mutex(void)
{
    return take(&kept);
}

static int ever_cond(void)
{
    return await(&never);
}

static int ever_sem(void)
{
    return sem_wait(&none);
}

static int ever_read(void)
{
    return get(silent[0]);
}

static int ever_sleep(void)
{
    return nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
}

static int ever_epoll(void)
{
    return poll_by(silent_epoll);
}

/* Signals come meanwhile, whose handler calls functions that are traced. */
static int ever_signalled(void)
{
    return take(&kept);
}

static void handle(int signal)
{
    (void)signal;
    usleep(20000);
    sem_post(&handled);
}

/* And has the lock that ever_mutex wants. */
static int ever_keeper(void)
{
    pthread_mutex_lock(&kept);
    return (int)sleep(1000);
}

static int then_mutex(void)
{
    return take(&passed);
}

static int then_cond(void)
{
    return await(&soon);
}

static int then_sem(void)
{
    return sem_wait(&one);
}

static int then_quit(void)
{
    return sem_wait(&last);
}

static int then_read(void)
{
    return get(spoken[0]);
}

static int then_epoll(void)
{
    return poll_by(spoken_epoll);
}

static int then_write(void)
{
    return pthread_rwlock_wrlock(&written) || pthread_rwlock_unlock(&written);
}

DO(release_mutex, pthread_mutex_unlock(&passed))

static void release_cond(void)
{
    pthread_mutex_lock(&guard);
    ready = true;
    pthread_cond_signal(&soon);
    pthread_mutex_unlock(&guard);
}

DO(release_sem, sem_post(&one))
DO(release_quit, sem_post(&last))

/* What then_epoll sees, too, if it is released after that: nothing is left by then. */
static void release_read(void)
{
    if (write(spoken[1], "x", 1) != 1)
        abort();
}

DO(release_write, pthread_rwlock_unlock(&written))

static struct stander {
    const char *name;
    int (*stand)(void);
    void (*release)(void);
    pthread_t thread;
    long computed_us;
    _Atomic bool over;
} standers[] = {
    {"ever_keeper", ever_keeper, NULL, 0, 0, 0},
    {"ever_mutex", ever_mutex, NULL, 0, 0, 0},
    {"ever_signalled", ever_signalled, NULL, 0, 0, 0},
    {"ever_cond", ever_cond, NULL, 0, 0, 0},
    {"ever_sem", ever_sem, NULL, 0, 0, 0},
    {"ever_read", ever_read, NULL, 0, 0, 0},
    {"ever_sleep", ever_sleep, NULL, 0, 0, 0},
    {"ever_epoll", ever_epoll, NULL, 0, 0, 0},
    {"then_quit", then_quit, release_quit, 0, 0, 0},
    {"then_mutex", then_mutex, release_mutex, 0, 0, 0},
    {"then_cond", then_cond, release_cond, 0, 0, 0},
    {"then_sem", then_sem, release_sem, 0, 0, 0},
    {"then_read", then_read, release_read, 0, 0, 0},
    {"then_epoll", then_epoll, release_read, 0, 0, 0},
    {"then_write", then_write, release_write, 0, 0, 0},
};
enum { STANDERS = sizeof standers / sizeof *standers };

static void *stand(void *arg)
{
    struct stander *s = arg;
    if (s->stand() != 0)
        abort();
    uint64_t begin = now_ns();
    while (now_ns() - begin < COMPUTES_US * 1000u)
        ;
    s->computed_us = (long)(now_ns() - begin) / 1000;
    if (s->stand != then_quit)
        usleep(1000); /* that a tracer knows */
    s->over = true;
    return NULL;
}

static struct stander *find(int (*stand_in)(void))
{
    struct stander *s = standers;
    while (s->stand != stand_in)
        s++;
    return s;
}

/* The system call that it is in is the last thing that a thread does. */
DO(await_standing, usleep(200000))

static void prepare(void)
{
    struct epoll_event input = {.events = EPOLLIN | EPOLLET};
    if (pipe(silent) != 0 || pipe(spoken) != 0)
        exit(1);
    sem_init(&none, 0, 0);
    sem_init(&one, 0, 0);
    sem_init(&last, 0, 0);
    sem_init(&handled, 0, 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL);
    silent_epoll = epoll_create1(0);
    spoken_epoll = epoll_create1(0);
    epoll_ctl(silent_epoll, EPOLL_CTL_ADD, silent[0], &input);
    epoll_ctl(spoken_epoll, EPOLL_CTL_ADD, spoken[0], &input);
    pthread_mutex_lock(&passed);
    pthread_rwlock_wrlock(&written);
}

int main(void)
{
    char line[64];
    prepare();
    for (int i = 0; i < STANDERS; i++) {
        if (pthread_create(&standers[i].thread, NULL, stand, &standers[i]) != 0)
            return 1;
        pthread_setname_np(standers[i].thread, standers[i].name);
        if (i == 0)
            usleep(10000); /* it is the one who has the lock */
    }
    await_standing();
    printf("ready\n");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 1;
    for (int i = 0; i < SIGNALS; i++) {
        pthread_kill(find(ever_signalled)->thread, SIGUSR1);
        sem_wait(&handled);
    }
    for (int i = 0; i < STANDERS; i++) {
        if (standers[i].release)
            standers[i].release();
        while (standers[i].release && !standers[i].over)
            usleep(1000);
    }
    printf("over\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        ;
    for (int i = 0; i < STANDERS; i++)
        printf("%s %ld\n", standers[i].name, standers[i].computed_us);
    return 0;
}
