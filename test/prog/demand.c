/*
 * Programs whose CPU samples are switched on while they run, by others. Each says its threads' ids
 * in a line, and ends with 0 at the end of standard input.
 *
 *   spins     two threads compute, and never call anything
 *   comes     threads that compute for 2 ms of their time come and go
 *   stacks    a thread on a signal stack too small for another handler; one that computes in a
 *             handler on a signal stack; it looks whether anything was written below these
 *   confined  takes a filter that kills for timers
 *   forks     at each byte, a child that computes, and says how many timers it has
 *   alone     the only thread computes at each byte
 */
#include "program.h"
#include <sys/auxv.h>

#define NOINLINE __attribute__((noinline, noclone))

static _Atomic bool over;
static volatile uint64_t sink;
static _Atomic int begun;
static _Atomic pid_t tids[2];

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NOINLINE static void turn(void)
{
    for (int i = 0; i < 10000; i++)
        sink += (uint64_t)i;
}

NOINLINE static void first_spinner(void)
{
    while (!over)
        turn();
}

NOINLINE static void second_spinner(void)
{
    while (!over)
        turn();
}

NOINLINE static void compute_for(double seconds)
{
    for (double end = cpu() + seconds; cpu() < end;)
        turn();
}

static void enter(int i)
{
    tids[i] = (pid_t)syscall(SYS_gettid);
    begun++;
}

static void *spin_first(void *arg)
{
    enter(0);
    first_spinner();
    return arg;
}

static void *spin_second(void *arg)
{
    enter(1);
    second_spinner();
    return arg;
}

static void *compute_briefly(void *arg)
{
    compute_for(0.002);
    return arg;
}

static void *come_and_go(void *arg)
{
    enter(0);
    begun++;
    while (!over) {
        RUN_THREADS(2, compute_briefly, NULL);
    }
    return arg;
}

/* --- stacks */

enum { BELOW = 8192, ON_STACK = 16384, KERNELS_LEAST = 5120 /* of any architecture */ };

static uint8_t *small, *large;

static uint8_t *new_stack(size_t bytes)
{
    uint8_t *room = malloc(BELOW + bytes);
    memset(room, 0x5a, BELOW + bytes);
    stack_t stack = {.ss_sp = room + BELOW, .ss_size = bytes};
    if (sigaltstack(&stack, NULL) != 0)
        abort();
    return room;
}

static bool untouched(const uint8_t *room)
{
    for (int i = 0; i < BELOW; i++) {
        if (room[i] != 0x5a)
            return false;
    }
    return true;
}

static void *on_small_stack(void *arg)
{
    size_t least = getauxval(AT_MINSIGSTKSZ);
    small = new_stack(least > KERNELS_LEAST ? least : KERNELS_LEAST);
    return spin_first(arg);
}

static void on_signal(int number)
{
    (void)number;
    char most[ON_STACK / 2];
    memset(most, 1, sizeof most);
    sink += (uint64_t)most[sink % sizeof most];
    spin_second(NULL);
}

static void *in_handler(void *arg)
{
    large = new_stack(ON_STACK);
    raise(SIGUSR1);
    return arg;
}

/* --- confined */

static int confine(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                        FILTER_OF(SYS_timer_create, SECCOMP_RET_KILL_PROCESS));
}

/* --- forks, alone */

static int timers(void)
{
    char line[256];
    int n = 0;
    FILE *f = fopen("/proc/self/timers", "r");
    while (f && fgets(line, sizeof line, f))
        n += strncmp(line, "ID:", 3) == 0;
    return n;
}

static void at_byte(const char *what)
{
    if (strcmp(what, "alone") == 0) {
        compute_for(0.05);
        printf("done\n");
    } else if (strcmp(what, "forks") == 0 && fork() == 0) {
        compute_for(0.1);
        printf("%d\n", timers());
        exit(0);
    }
    wait(NULL);
    fflush(stdout);
}

static void start(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t thread;
    void *(*const routines[])(void *) = {first, second};
    for (int i = 0; i < 2; i++) {
        if (routines[i] && pthread_create(&thread, NULL, routines[i], NULL) != 0)
            exit(1);
    }
    while (begun < 2)
        usleep(1000);
}

int main(int argc, char **argv)
{
    char byte;
    const char *what = argc > 1 ? argv[1] : "";
    signal(SIGUSR1, on_signal);
    if (strcmp(what, "stacks") == 0) {
        sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK},
                  NULL);
        start(on_small_stack, in_handler);
    } else if (strcmp(what, "comes") == 0) {
        start(come_and_go, NULL);
    } else if (strcmp(what, "alone") != 0) {
        start(spin_first, spin_second);
    }
    if (strcmp(what, "confined") == 0 && confine() != 0)
        return 77;
    printf("%d %d\n", tids[0], tids[1]);
    fflush(stdout);
    while (read(0, &byte, 1) == 1)
        at_byte(what);
    over = true;
    return (small && !untouched(small)) || (large && !untouched(large));
}
