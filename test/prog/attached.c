/*
 * Programs that somebody attaches to while they run. Each checks all the time that nothing happens
 * to it; a line says what did. At the end of standard input it says how often it went round, and
 * ends with 0 if nothing did.
 *
 *   locks       one thread sleeps 50 ms with a lock, two others want it
 *   calls       threads in calls of all kinds, with timeouts and without
 *   sleeper     the only thread sleeps, with a timeout in the kernel that it has to go on with
 *   many N      so many threads hand a number round by pipes
 *   forks       forks children and loads and unloads a library all the time
 *   signals     one thread waits for another one's signals, each of which is numbered; a timer's
 *               and children's come in between
 *   closes      closes all descriptors behind its own, again and again
 *   execs       executes itself every 20 ms
 */
#include "program.h"
#include "libc.h"

static _Atomic bool over;
static _Atomic long rounds, bad;

static void complain(const char *what, long got)
{
    bad++;
    printf("%s: %ld, errno %s\n", what, got, strerror(errno));
    fflush(stdout);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start(void *(*routine)(void *), const void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, (void *)arg) != 0)
        exit(1);
}

/* --- locks */

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *arg)
{
    while (!over) {
        pthread_mutex_lock(&journal);
        usleep(50000);
        pthread_mutex_unlock(&journal);
        usleep(5000);
        rounds++;
    }
    return arg;
}

static void *want(void *arg)
{
    while (!over) {
        pthread_mutex_lock(&journal);
        free(malloc(1000));
        pthread_mutex_unlock(&journal);
        usleep(1000);
    }
    return arg;
}

/* --- calls: what each returns after TIMEOUT, or by the hand of somebody */

enum { TIMEOUT_MS = 20 };

static int by_nanosleep(void)
{
    return nanosleep(&(struct timespec){.tv_nsec = TIMEOUT_MS * 1000000}, NULL);
}

static int by_clock_nanosleep(void)
{
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = TIMEOUT_MS * 1000000},
                           NULL);
}

static int by_poll(void)
{
    return poll(NULL, 0, TIMEOUT_MS);
}

static int by_select(void)
{
    return select(0, NULL, NULL, NULL, &(struct timeval){.tv_usec = TIMEOUT_MS * 1000});
}

static int by_epoll(void)
{
    static int epoll = -1;
    struct epoll_event event;
    if (epoll < 0)
        epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll_wait(epoll, &event, 1, TIMEOUT_MS);
}

static int by_cond(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    struct timespec until = after(CLOCK_REALTIME, TIMEOUT_MS * 1000000);
    pthread_mutex_lock(&mutex);
    int r = pthread_cond_timedwait(&cond, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    return r == ETIMEDOUT ? 0 : r;
}

static int by_sigtimedwait(void)
{
    sigset_t none;
    sigemptyset(&none);
    int r = sigtimedwait(&none, NULL, &(struct timespec){.tv_nsec = TIMEOUT_MS * 1000000});
    return r < 0 && errno == EAGAIN ? 0 : r;
}

static const struct call {
    const char *name;
    int (*make)(void);
} calls[] = {
    {"nanosleep", by_nanosleep},
    {"clock_nanosleep", by_clock_nanosleep},
    {"poll", by_poll},
    {"select", by_select},
    {"epoll_wait", by_epoll},
    {"pthread_cond_timedwait", by_cond},
    {"sigtimedwait", by_sigtimedwait},
};

/* Registers that a call keeps, errno, and the mask of signals are as before; it lasts its time. */
static void check_call(const struct call *call)
{
    sigset_t mask = {0}, after = {0};
    double number = 1.5 + (double)rounds, kept = number;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    errno = EXFULL;
    double begin = now();
    int r = call->make();
    double took = now() - begin;
    __asm__ volatile("" : "+x"(kept));
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    if (r != 0)
        complain(call->name, r);
    if (took < TIMEOUT_MS * 0.99e-3)
        complain("too short, in us", (long)(took * 1e6));
    if (kept != number || memcmp(&mask, &after, sizeof mask) != 0)
        complain("registers or signal mask", 0);
    rounds++;
}

static void *call_again(void *arg)
{
    while (!over)
        check_call(arg);
    return arg;
}

/* --- many */

static struct link {
    int from, to;
} * links;

static void *hand_on(void *arg)
{
    struct link *l = arg;
    long number, last = -1;
    while (read(l->from, &number, sizeof number) == sizeof number) {
        if (number <= last)
            complain("a number came twice", number);
        last = number;
        free(malloc((size_t)number % 5000));
        number++;
        if (write(l->to, &number, sizeof number) != sizeof number)
            complain("write", number);
        rounds++;
        if (over && l == links)
            break;
    }
    if (!over)
        complain("read", last);
    return arg;
}

static void start_ring(int n)
{
    long first = 1;
    links = calloc((size_t)n, sizeof *links);
    for (int i = 0; i < n; i++) {
        int ends[2];
        if (pipe(ends) != 0)
            exit(1);
        links[(i + 1) % n].from = ends[0];
        links[i].to = ends[1];
    }
    pthread_t thread;
    for (int i = 0; i < n; i++)
        pthread_create(&thread, NULL, hand_on, &links[i]);
    if (write(links[n - 1].to, &first, sizeof first) != sizeof first)
        exit(1);
}

/* --- forks */

static void *fork_again(void *arg)
{
    while (!over) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(pthread_mutex_trylock(&journal) ? 1 : 7);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 7 << 8)
            complain("child", status);
        rounds++;
    }
    return arg;
}

static void *load_again(void *arg)
{
    while (!over) {
        void *library = dlopen("libm.so.6", RTLD_NOW), *other = dlopen("libanl.so.1", RTLD_NOW);
        double (*root)(double) = (double (*)(double))(library ? dlsym(library, "cbrt") : NULL);
        if (!root || root(27) < 2.9)
            complain("dlopen", 0);
        if (other)
            dlclose(other);
        if (library)
            dlclose(library);
        rounds++;
    }
    return arg;
}

/* --- signals */

static sem_t handled;
static volatile sig_atomic_t numbered;
static _Atomic long others;

static void on_number(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    if (info->si_value.sival_int != numbered + 1)
        complain("a signal's number", info->si_value.sival_int);
    numbered = info->si_value.sival_int;
}

static void on_other(int sig)
{
    (void)sig;
    others++;
}

/* None is sent before the one before has let its thread go on. */
static void *send_again(void *arg)
{
    for (int i = 1; !over; i++) {
        if (sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}) != 0)
            complain("sigqueue", i);
        while (sem_wait(&handled) != 0)
            ;
    }
    return arg;
}

static void *await_signals(void *arg)
{
    sigset_t number, during, after;
    sigemptyset(&number);
    sigaddset(&number, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &number, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &during);
    sigdelset(&during, SIGRTMIN);
    for (int i = 1; !over; i++) {
        while (numbered < i)
            if (sigsuspend(&during) != -1 || errno != EINTR)
                complain("sigsuspend", i);
        pthread_sigmask(SIG_SETMASK, NULL, &after);
        if (!sigismember(&after, SIGRTMIN) || sigismember(&after, SIGALRM))
            complain("the mask of signals", i);
        rounds++;
        sem_post(&handled);
    }
    return arg;
}

static void start_signals(void)
{
    struct sigaction number = {.sa_sigaction = on_number, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction other = {.sa_handler = on_other, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 1000}, {0, 1000}};
    sigset_t mask;
    sem_init(&handled, 0, 0);
    sigaction(SIGRTMIN, &number, NULL);
    sigaction(SIGALRM, &other, NULL);
    sigaction(SIGCHLD, &other, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGRTMIN); /* but in the one that awaits it */
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    start(await_signals, NULL);
    start(send_again, NULL);
    start(fork_again, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

/* --- closes */

static void *close_again(void *arg)
{
    while (!over) {
        int fd = dup(0);
        if (fd < 3 || close_range(3, ~0u, 0) != 0 || fcntl(fd, F_GETFD) != -1)
            complain("close_range", fd);
        usleep(100);
        rounds++;
    }
    return arg;
}

/* --- execs */

static void *exec_later(void *arg)
{
    char number[24];
    usleep(20000);
    snprintf(number, sizeof number, "%ld", rounds + 1);
    if (!over)
        execl("/proc/self/exe", "attached", "execs", number, (char *)NULL);
    return arg;
}

static bool input_is_over(void)
{
    char c;
    return poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, 0) == 1 && read(0, &c, 1) == 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    char c;
    if (strcmp(what, "locks") == 0) {
        start(hold, NULL);
        start(want, NULL);
        start(want, NULL);
    } else if (strcmp(what, "calls") == 0) {
        for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
            start(call_again, &calls[i]);
    } else if (strcmp(what, "many") == 0) {
        start_ring(atoi(argv[2]));
    } else if (strcmp(what, "forks") == 0) {
        start(fork_again, NULL);
        start(load_again, NULL);
    } else if (strcmp(what, "signals") == 0) {
        start_signals();
    } else if (strcmp(what, "closes") == 0) {
        start(close_again, NULL);
    } else if (strcmp(what, "execs") == 0) {
        rounds = argc > 2 ? atol(argv[2]) : 0;
        start(exec_later, NULL);
    } else if (strcmp(what, "sleeper") != 0) {
        return 2;
    }
    if (argc < 3 || strcmp(what, "execs") != 0)
        printf("ready\n");
    fflush(stdout);
    while (strcmp(what, "sleeper") == 0 && !input_is_over())
        check_call(&calls[1]);
    while (strcmp(what, "sleeper") != 0 && read(0, &c, 1) > 0)
        ;
    over = true;
    usleep(100000);
    printf("%ld rounds\n", rounds);
    return bad != 0;
}
