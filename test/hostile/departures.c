/*
 * Signal handlers that do not go back to the call that they interrupted, or in another process,
 * while generations change as fast as they can: `departures <way>`. Calls are made from functions
 * of one name, down or up.
 */
#include "../prog/program.h"
#include <setjmp.h>
#include <ucontext.h>

enum {
    THREADS = 8,
    CHANGES = 100,
    DEPARTURES = 300,
    FORKS = 30,
    STACK = 256 << 10,
    SIGNALS_BYTES = 8
};
#define NOINLINE __attribute__((noinline))

static const char *way;
static atomic_int stop, departures;
static __thread sigjmp_buf jump;
static __thread ucontext_t context;
static __thread volatile bool calling, child;

/*
 * Behind the system call that leaf asks libc for, wherever libc makes it: a tracer's own code could
 * not be left without its noticing.
 */
static bool in_call(const ucontext_t *interrupted)
{
#if defined(__x86_64__)
    static const uint8_t system_call[] = {0x0f, 0x05};
    const greg_t *r = interrupted->uc_mcontext.gregs;
    bool none = r[REG_RDI] == 0 && r[REG_RSI] == 0 && r[REG_R10] == 0;
    return r[REG_RAX] == -EINTR && none && r[REG_R8] == SIGNALS_BYTES &&
           memcmp((const char *)r[REG_RIP] - sizeof system_call, system_call, sizeof system_call) ==
               0;
#else
    (void)interrupted;
    return false;
#endif
}

static void *sleeps(void *arg)
{
    poll(NULL, 0, 1);
    return arg;
}

/* The child, which has a trace of its own then, goes back to the call. */
static void go_on_in_child(void)
{
    pthread_t thread;
    pid_t pid = fork();
    child = pid == 0;
    while (!child && waitpid(pid, NULL, 0) < 0)
        ;
    for (int i = 0; i < 3 && child; i++) {
        if (pthread_create(&thread, NULL, sleeps, NULL) == 0)
            pthread_join(thread, NULL);
    }
}

static void depart(int number, siginfo_t *info, void *interrupted)
{
    (void)info;
    if (!calling || !in_call(interrupted))
        return;
    calling = false;
    departures++;
    if (strcmp(way, "siglongjmp") == 0)
        siglongjmp(jump, number);
    if (strcmp(way, "setcontext") == 0)
        setcontext(&context);
    if (strcmp(way, "fork") == 0)
        go_on_in_child();
    if (strcmp(way, "SYS_exit") == 0)
        syscall(SYS_exit, 0);
}

NOINLINE static int leaf(void)
{
    struct timespec time = {0, 200000};
    calling = true;
    int r = ppoll(NULL, 0, &time, NULL);
    calling = false;
    for (int i = 0; i < 50 && child; i++)
        poll(NULL, 0, 0);
    if (child)
        _exit(0); /* the parent, ending itself, may have held the lock of exit(3) */
    return r;
}

NOINLINE static int down(int n)
{
    volatile char room[64];
    room[0] = 1;
    return (n ? down(n - 1) : leaf()) + room[0];
}

NOINLINE static int up(int n)
{
    volatile char room[96];
    room[0] = 1;
    return (n ? up(n - 1) : leaf()) + room[0];
}

static void *run(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    while (!stop) {
        volatile bool back = false;
        int n = rand_r(&seed) % 20;
        getcontext(&context);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        if (back || sigsetjmp(jump, 1) != 0)
            continue;
        back = true;
        n & 1 ? down(n) : up(n);
    }
    return NULL;
}

/* Threads that end by the system call, whose stacks are taken away then. */
static void *make_brief(void *arg)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    while (!stop) {
        pthread_t thread;
        struct timespec us100 = {0, 100000};
        void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_setstack(&attr, stack, STACK);
        if (pthread_create(&thread, &attr, run, arg) == 0) {
            while (pthread_tryjoin_np(thread, NULL) != 0) {
                pthread_kill(thread, SIGUSR1);
                nanosleep(&us100, NULL);
            }
        }
        munmap(stack, STACK);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = depart, .sa_flags = SA_SIGINFO};
    bool brief = argc > 1 && strcmp(argv[1], "SYS_exit") == 0;
    char *none[] = {"none", NULL};
    pthread_t thread[THREADS];
    way = argc > 1 ? argv[1] : "";
    sigaction(SIGUSR1, &action, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, brief ? make_brief : run, (void *)(i + 1));
    int enough = strcmp(way, "fork") == 0 ? FORKS : DEPARTURES;
    for (int i = 0; i < CHANGES || departures < enough; i++) {
        for (int k = 0; k < THREADS; k++)
            pthread_kill(thread[k], SIGUSR1);
        execv("/nowhere", none); /* all earlier records are in the file first */
    }
    return 0;
}
