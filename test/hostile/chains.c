/*
 * Threads in calls of all kinds, each call from a chain of functions that tells which one it is,
 * while generations change as fast as they can: `chains <how> <changes> <threads>`. After so many
 * changes, and ENOUGH calls, it ends, as `how` says; see main.
 *
 * A stack is right when it reads: the call; call_<call>; functions digit_<0-7>; routine_<0-3>. The
 * digits but for the innermost, the call's number and the routine's add up to the innermost digit,
 * modulo 8.
 */
#include "../prog/program.h"
#include <sys/timerfd.h>

enum { DEPTH_MAX = 24, CALLS = 8, ROUTINES = 4, ON_STACK = 20, ENOUGH = 1000, ALTSTACK = 32 << 10 };
#define NOINLINE __attribute__((noinline))

struct worker {
    pthread_t thread;
    void *stack; /* its own; NULL: libc's */
    unsigned seed;
    int timer, epoll, socket;
    uint8_t digit[DEPTH_MAX]; /* outermost first */
    int digits, call;
};

static atomic_int stop;
static atomic_int returned; /* calls of all threads */
static int on_altstack;
static int null;
static sem_t sem;

/* Many return at once, others after a moment. */
static long some_ns(struct worker *w)
{
    return rand_r(&w->seed) % 2 ? 1 : rand_r(&w->seed) % 200000;
}

static int call_read(struct worker *w)
{
    struct itimerspec soon = {{0, 0}, {0, 1 + some_ns(w)}};
    uint64_t times;
    timerfd_settime(w->timer, 0, &soon, NULL);
    return (int)read(w->timer, &times, sizeof times);
}

static int call_poll(struct worker *w)
{
    return poll(NULL, 0, rand_r(&w->seed) % 2);
}

static int call_select(struct worker *w)
{
    struct timeval time = {0, some_ns(w) / 1000};
    return select(0, NULL, NULL, NULL, &time);
}

static int call_epoll_wait(struct worker *w)
{
    struct epoll_event event;
    return epoll_wait(w->epoll, &event, 1, rand_r(&w->seed) % 2);
}

static int call_recv(struct worker *w)
{
    char c;
    return (int)recv(w->socket, &c, 1, rand_r(&w->seed) % 2 ? MSG_DONTWAIT : 0);
}

static int call_write(struct worker *w)
{
    return (int)write(null, &w->call, 1);
}

static int call_ppoll(struct worker *w)
{
    struct timespec time = {0, some_ns(w)};
    return ppoll(NULL, 0, &time, NULL);
}

static int call_sigtimedwait(struct worker *w)
{
    struct timespec time = {0, some_ns(w)};
    sigset_t none;
    sigemptyset(&none);
    return sigtimedwait(&none, NULL, &time);
}

static int (*const calls[CALLS])(struct worker *) = {call_read,       call_poll,        call_select,
                                                     call_epoll_wait, call_recv,        call_write,
                                                     call_ppoll,      call_sigtimedwait};

static int (*const digits[8])(struct worker *, int);

/* A macro, to be no frame of its own. */
#define DOWN(w, at) ((at) < (w)->digits ? digits[(w)->digit[at]](w, (at) + 1) : calls[(w)->call](w))

#define DIGIT(n)                                            \
    NOINLINE static int digit_##n(struct worker *w, int at) \
    {                                                       \
        volatile char room[32 * n + 8];                     \
        room[0] = n;                                        \
        return DOWN(w, at) + room[0];                       \
    }
DIGIT(0)
DIGIT(1)
DIGIT(2)
DIGIT(3)
DIGIT(4)
DIGIT(5)
DIGIT(6)
DIGIT(7)

static int (*const digits[8])(struct worker *, int) = {digit_0, digit_1, digit_2, digit_3,
                                                       digit_4, digit_5, digit_6, digit_7};

static void choose(struct worker *w, int routine)
{
    int n = rand_r(&w->seed) % (DEPTH_MAX - 1), sum = routine;
    sum += w->call = rand_r(&w->seed) % CALLS;
    for (int i = 0; i < n; i++)
        sum += w->digit[i] = (uint8_t)(rand_r(&w->seed) % 8);
    w->digit[n] = (uint8_t)(sum % 8);
    w->digits = n + 1;
}

/* The signal stack is a part of the thread's own. */
#define ROUTINE(n)                                                   \
    static void *routine_##n(void *arg)                              \
    {                                                                \
        char room[ALTSTACK];                                         \
        stack_t alternate = {.ss_sp = room, .ss_size = ALTSTACK};    \
        struct worker *w = arg;                                      \
        if (on_altstack)                                             \
            sigaltstack(&alternate, NULL);                           \
        for (int i = 0; !stop && (!w->stack || i < ON_STACK); i++) { \
            choose(w, n);                                            \
            DOWN(w, 0);                                              \
            returned++;                                              \
        }                                                            \
        return NULL;                                                 \
    }
ROUTINE(0)
ROUTINE(1)
ROUTINE(2)
ROUTINE(3)

static void *(*const routines[ROUTINES])(void *) = {routine_0, routine_1, routine_2, routine_3};

static struct worker *new_worker(unsigned seed)
{
    struct worker *w = calloc(1, sizeof *w);
    struct timeval soon = {0, 1000};
    int pair[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    w->seed = seed;
    w->timer = timerfd_create(CLOCK_MONOTONIC, 0);
    w->epoll = epoll_create1(0);
    w->socket = pair[0];
    return w;
}

/* One thread after the other, each on a stack that is gone as soon as it is. */
static void *make_brief(void *arg)
{
    enum { STACK = 256 << 10 };
    struct worker *w = arg;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    while (!stop) {
        w->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_setstack(&attr, w->stack, STACK);
        if (pthread_create(&w->thread, &attr, routines[rand_r(&w->seed) % ROUTINES], w) == 0)
            pthread_join(w->thread, NULL);
        munmap(w->stack, STACK);
    }
    return NULL;
}

static void post(int number)
{
    int saved = errno;
    (void)number;
    sem_post(&sem);
    errno = saved;
}

/* Has somebody to wake in the middle of calls: whose begin is written then. */
static void *waits(void *arg)
{
    while (!stop)
        sem_wait(&sem);
    return arg;
}

static void storm(void)
{
    struct sigaction action = {.sa_handler = post, .sa_flags = on_altstack ? SA_ONSTACK : 0};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec every = {{0, 200000}, {0, 200000}};
    pthread_t thread;
    timer_t timer;
    pthread_create(&thread, NULL, waits, NULL);
    sigaction(SIGALRM, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &every, NULL);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int changes = argc > 2 ? atoi(argv[2]) : 100, threads = argc > 3 ? atoi(argv[3]) : 16;
    struct worker *worker[threads];
    char *none[] = {"none", NULL};
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    on_altstack = strcmp(how, "altstack") == 0;
    null = open("/dev/null", O_RDWR);
    sem_init(&sem, 0, 0);
    for (int i = 0; i < threads; i++) {
        int brief = strcmp(how, "brief") == 0 && i % 4 == 0;
        worker[i] = new_worker((unsigned)i + 1);
        pthread_create(&worker[i]->thread, NULL, brief ? make_brief : routines[i % ROUTINES],
                       worker[i]);
    }
    pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    if (strcmp(how, "signals") == 0 || on_altstack)
        storm();
    for (int i = 0; i < changes || returned < ENOUGH; i++)
        execv("/nowhere", none); /* all earlier records are in the file first */
    if (strcmp(how, "crash") == 0)
        raise(SIGSEGV);
    return 0; /* all the others go on */
}
