/*
 * Stacks of all kinds, for unwindcheck.so: scenes [scene…]; all of them by default. Built several
 * times with different flags.
 */
#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;
static volatile sig_atomic_t ticks;

NOINLINE static void point(void)
{
    sched_yield();
    sink++;
}

/* Frames --------------------------------------------------------------------------------------- */

NOINLINE static int recursion(int n)
{
    if (n == 0)
        point();
    return n ? recursion(n - 1) + 1 : sink;
}

NOINLINE static void vla(int n)
{
    char room[n + 1];
    memset(room, n, sizeof room);
    sink += room[n / 2];
    if (n > 0)
        vla(n - 1);
    point();
    sink += room[0];
}

NOINLINE static void with_alloca(int n)
{
    for (int i = 0; i < n; i++) {
        char *p = alloca((size_t)i * 16 + 1);
        *(volatile char *)p = 1;
        point();
    }
    recursion(3);
}

NOINLINE static void realigned(int n)
{
    volatile char room[256] __attribute__((aligned(128)));
    room[0] = room[255] = 1;
    if (n > 0)
        realigned(n - 1);
    else
        vla(3);
    sink += room[0];
}

NOINLINE static void big_frame(void)
{
    volatile char room[200000];
    room[0] = 1;
    recursion(2);
    sink += room[0];
}

NOINLINE static int many_arguments(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
    point();
    return a + b + c + d + e + f + g + h + i + (i ? many_arguments(b, c, d, e, f, g, h, i, 0) : 0);
}

/* A callee-saved register for everything, rbp too. */
NOINLINE static int registers(int n)
{
    int a = sink, b = a * 3, c = b ^ n, d = c + a, e = d * b, f = e - c, g = f | 1;
    point();
    int r = n ? registers(n - 1) : 0;
    return r + a * b * c + d * e * f + g;
}

static void frames(void)
{
    for (int i = 0; i < 3; i++) {
        for (int n = 0; n < 300; n += 13)
            recursion(n);
        vla(20);
        with_alloca(9);
        realigned(3);
        big_frame();
        many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9);
        registers(12);
    }
}

/* A call that is the last instruction of its function ------------------------------------------ */

static jmp_buf back;

__attribute__((noreturn, noinline)) static void never(void)
{
    point();
    longjmp(back, 1);
}

__attribute__((noreturn, noinline)) static void ends_with_call(void)
{
    sink++;
    never();
}

static void noreturn(void)
{
    for (int i = 0; i < 3; i++) {
        if (!setjmp(back))
            ends_with_call();
    }
}

/* Through libc --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    point();
    return *(const int *)a - *(const int *)b;
}

static void once_routine(void)
{
    recursion(2);
}

static void callbacks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int values[40];
    for (int i = 0; i < 40; i++)
        values[i] = i * 37 % 40;
    qsort(values, 40, sizeof *values, by_value);
    bsearch(&values[3], values, 40, sizeof *values, by_value);
    pthread_once(&once, once_routine);
    atexit(once_routine);
}

/* Signals -------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    ticks += number != 0;
    recursion(number == SIGPROF ? 0 : 3);
}

static void on_signal_info(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    on_signal(number);
}

static void install(int number, int flags)
{
    struct sigaction action = {.sa_flags = flags | SA_RESTART};
    if (flags & SA_SIGINFO)
        action.sa_sigaction = on_signal_info;
    else
        action.sa_handler = on_signal;
    sigaction(number, &action, NULL);
}

static void nested(int number)
{
    on_signal(number);
    raise(SIGUSR2);
}

static void signals(void)
{
    stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&alternate, NULL);
    for (int onstack = 0; onstack < 2; onstack++) {
        int flags = onstack ? SA_ONSTACK : 0;
        install(SIGUSR1, flags);
        install(SIGUSR2, flags | SA_SIGINFO);
        raise(SIGUSR1);
        raise(SIGUSR2);
        struct sigaction action = {.sa_handler = nested, .sa_flags = flags};
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        recursion(4);
    }
}

static volatile double real_sink;

NOINLINE static int work(int n)
{
    static char text[256];
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* in the vDSO */
    snprintf(text, sizeof text, "%d %s %f", n, "text", (double)ts.tv_nsec);
    real_sink += strtod(text, NULL) + (double)strlen(text);
    memset(text, n, 200);
    if (n % 7 == 0)
        vla(2);
    if (n % 11 == 0)
        realigned(1);
    return n ? work(n - 1) + 1 : 0;
}

/* At any instruction: in prologues, epilogues, the procedure linkage table, libc, the vDSO. */
static void interrupted(void)
{
    struct itimerval often = {{0, 1000}, {0, 1000}}, never_more = {{0, 0}, {0, 0}};
    stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&alternate, NULL);
    for (int onstack = 0; onstack < 2; onstack++) {
        install(SIGPROF, onstack ? SA_ONSTACK : 0);
        ticks = 0;
        setitimer(ITIMER_PROF, &often, NULL);
        for (int i = 0; i < 100000 && ticks < 60; i++)
            work(10);
        setitimer(ITIMER_PROF, &never_more, NULL);
    }
}

/* Coroutines ----------------------------------------------------------------------------------- */

static ucontext_t here, there[3];

static void coroutine(void)
{
    static int current;
    for (int i = 0; i < 5; i++) {
        recursion(i);
        vla(2);
        int me = current;
        current = (me + 1) % 3;
        swapcontext(&there[me], &there[current]);
    }
}

static void coroutine_entry(void)
{
    coroutine();
}

static void coroutines(void)
{
    enum { SIZE = 65536, GUARD = 4096 };
    for (int i = 0; i < 3; i++) {
        char *stack = mmap(NULL, SIZE + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(stack + GUARD, SIZE, PROT_READ | PROT_WRITE);
        getcontext(&there[i]);
        there[i].uc_stack.ss_sp = stack + GUARD;
        there[i].uc_stack.ss_size = SIZE;
        there[i].uc_link = &here;
        makecontext(&there[i], coroutine_entry, 0);
    }
    swapcontext(&here, &there[0]);
}

/* Threads -------------------------------------------------------------------------------------- */

static void *in_thread(void *arg)
{
    recursion(5);
    registers(4);
    vla(3);
    return arg;
}

static void threads(void)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        pthread_create(&thread, i % 2 ? &small : NULL, in_thread, NULL);
        pthread_join(thread, NULL);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"frames", frames},   {"noreturn", noreturn},       {"callbacks", callbacks},
    {"signals", signals}, {"interrupted", interrupted}, {"coroutines", coroutines},
    {"threads", threads},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++)
            wanted |= strcmp(argv[k], scenes[i].name) == 0;
        if (wanted)
            scenes[i].run();
    }
    return 0;
}
