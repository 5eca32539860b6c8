/*
 * Real-time signals as programs use them, each of them: blocked, waited for, in order, queued with
 * values, from timers, to handlers; masks read back as they were given; and users changed in all
 * threads, for which libc has a signal of its own. Meanwhile the CPU is used, so that a sampler has
 * something to do. What it prints is known: see test_cpu.py.
 */
#include "program.h"
#include <sys/signalfd.h>

enum { THREADS = 3, USERS = 50 };

static sigset_t all;
static volatile sig_atomic_t got[65], values;
static pthread_barrier_t barrier;
static atomic_int wrong;
static gid_t group;

static int count(const sigset_t *set)
{
    int n = 0;
    for (int i = 1; i < _NSIG; i++)
        n += sigismember(set, i) == 1;
    return n;
}

/* All at once pending, then taken in the order of their numbers. */
static void waits(void)
{
    sigset_t before, now, pending;
    siginfo_t info;
    int number, in_order = 0, n = SIGRTMAX - SIGRTMIN + 1;
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    compute_ns(30000000);
    for (int i = SIGRTMAX; i >= SIGRTMIN; i--)
        raise(i);
    compute_ns(30000000);
    sigpending(&pending);
    printf("blocked %d of %d, before %d, pending %d of %d\n", count(&now), count(&all),
           count(&before), count(&pending), n);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        in_order += sigwait(&all, &number) == 0 && number == i;
    printf("in order %d of %d\n", in_order, n);
    union sigval value = {.sival_int = 77};
    sigqueue(getpid(), SIGRTMAX, value);
    compute_ns(10000000);
    number = sigwaitinfo(&all, &info);
    printf("queued %d, value %d\n", number == SIGRTMAX, info.si_value.sival_int);
    number = sigtimedwait(&all, &info, &(struct timespec){0, 20000000});
    printf("nothing else: %d\n", number == -1 && errno == EAGAIN);
    struct signalfd_siginfo from_fd;
    int fd = signalfd(-1, &all, SFD_NONBLOCK);
    raise(SIGRTMAX);
    compute_ns(10000000);
    ssize_t size = read(fd, &from_fd, sizeof from_fd);
    printf("read %d\n", size == sizeof from_fd && (int)from_fd.ssi_signo == SIGRTMAX);
    compute_ns(30000000);
    size = read(fd, &from_fd, sizeof from_fd);
    printf("nothing else: %d\n", size == -1 && errno == EAGAIN);
    close(fd);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    got[number]++;
    values += context && info->si_value.sival_int == number;
    compute_ns(5000000);
}

static void handlers(int flags)
{
    struct sigaction back, action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
    int as_before = 0, masks = 0, once = 0, n = SIGRTMAX - SIGRTMIN + 1;
    values = 0;
    memset((void *)got, 0, sizeof got);
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++) {
        sigaction(i, NULL, &back);
        as_before += back.sa_handler == SIG_DFL;
        sigemptyset(&action.sa_mask);
        for (int bit = i; bit <= SIGRTMAX; bit++)
            sigaddset(&action.sa_mask, bit);
        sigaction(i, &action, NULL);
        sigaction(i, NULL, &back);
        masks += memcmp(&action.sa_mask, &back.sa_mask, sizeof(unsigned long)) == 0;
    }
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        sigqueue(getpid(), i, (union sigval){.sival_int = i});
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++) {
        once += got[i] == 1;
        signal(i, SIG_DFL);
    }
    printf("flags %x: default %d, masks %d, once %d, values %d of %d\n", (unsigned)flags, as_before,
           masks, once, values, n);
}

static void timers(void)
{
    struct itimerspec often = {{0, 2000000}, {0, 2000000}};
    sigset_t one;
    siginfo_t info;
    timer_t timer;
    int right = 0;
    sigemptyset(&one);
    sigaddset(&one, SIGRTMAX);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX, .sigev_value.sival_int = 4711};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    for (int i = 0; i < 20; i++) {
        compute_ns(3000000);
        right += sigwaitinfo(&one, &info) == SIGRTMAX && info.si_code == SI_TIMER &&
                 info.si_value.sival_int == 4711;
    }
    timer_delete(timer);
    while (sigtimedwait(&one, &info, &(struct timespec){0, 0}) > 0)
        ;
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    printf("timer %d of 20\n", right);
}

/* Has the effective group that the first thread has given itself, at each turn. */
static void *follow(void *unused)
{
    for (int i = 1; i <= USERS; i++) {
        compute_ns(1000000);
        pthread_barrier_wait(&barrier);
        wrong += syscall(SYS_getegid) != group;
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

/* libc asks each thread by a signal, wherever it is. */
static void users(void)
{
    pthread_t threads[THREADS];
    int done = 0;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, follow, NULL);
    for (int i = 1; i <= USERS; i++) {
        done += setegid((gid_t)i) == 0;
        group = getegid();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("groups %d, wrong %d\n", geteuid() ? USERS : done, wrong);
}

static void *nothing(void *unused)
{
    return unused;
}

int main(int argc, char **argv)
{
    static char stack[65536];
    (void)argv;
    sigfillset(&all);
    if (argc > 1) { /* of what a program sees without threads, too */
        RUN_THREADS(1, nothing, NULL);
    }
    waits();
    handlers(0);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    handlers(SA_ONSTACK);
    timers();
    users();
    return 0;
}
