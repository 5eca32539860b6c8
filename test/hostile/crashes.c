/*
 * Ways to die of a signal, with threads at work. The first argument says which; "handled" after it:
 * the program has a handler of its own. Prints what sigaction says before, when it was asked.
 */
#include "../prog/program.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char altstack[16 << 10];

static void *work(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&mutex);
        usleep(100);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

DO(segv, *(volatile int *)(size_t)(getpid() > 0 ? 16 : 0) = 1)

static void bus(void)
{
    char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(tmpfile()), 0);
    *(volatile char *)p;
}

static void fpe(void)
{
    volatile int zero = 0;
    zero = 100 / zero;
}

DO(ill, __builtin_trap())

static volatile int bottom;

static int overflow(volatile char *above)
{
    volatile char frame[4096] = {above ? above[0] : 1};
    return bottom ? 0 : overflow(frame) + frame[0];
}

static void overflow_on_altstack(void)
{
    stack_t stack = {.ss_sp = altstack, .ss_size = sizeof altstack};
    sigaltstack(&stack, NULL);
    overflow(NULL);
}

static void *in_thread(void *arg)
{
    segv();
    return arg;
}

DO(thread, RUN_THREADS(1, in_thread, NULL))

/* glibc finds it out with its own lock held, and does not go through the abort that others see. */
static void corrupt(void)
{
    volatile size_t *p = malloc(2000);
    void *volatile after = malloc(10);
    (void)after;
    p[251] = 1; /* the size of the next chunk, which cannot be that */
    free((void *)p);
}

DO(jump, ((void (*)(void))(size_t)(getpid() > 0 ? 8 : 0))())

static void in_handler(int number)
{
    (void)number;
    segv();
}

static void handler_faults(void)
{
    signal(SIGUSR1, in_handler);
    raise(SIGUSR1);
}

DO(raise_term, raise(SIGTERM))

static void kill_int(void)
{
    kill(getpid(), SIGINT);
    pause();
}

DO(kill_hard, kill(getpid(), SIGKILL))
DO(raise_segv, raise(SIGSEGV))

static const struct {
    const char *name;
    void (*die)(void);
} ways[] = {
    {"segv", segv},       {"bus", bus},          {"fpe", fpe},
    {"ill", ill},         {"abort", abort},      {"thread", thread},
    {"corrupt", corrupt}, {"jump", jump},        {"altstack", overflow_on_altstack},
    {"term", raise_term}, {"int", kill_int},     {"handler", handler_faults},
    {"kill", kill_hard},  {"raise", raise_segv},
};

static void its_own(int number)
{
    static const char text[] = "its own\n";
    if (write(1, text, sizeof text - 1) > 0)
        signal(number, SIG_DFL);
}

/* A handler once; what stood there before and what stands there afterwards. */
static void handle(int number)
{
    struct sigaction action = {.sa_handler = its_own}, old;
    sigaction(number, &action, &old);
    printf("%d", old.sa_handler == SIG_DFL && old.sa_flags == 0);
    sigaction(number, NULL, &old);
    printf(" %d\n", old.sa_handler == its_own);
}

int main(int argc, char **argv)
{
    pthread_t t;
    for (int i = 0; argc > 1 && strcmp(argv[1], "alone") != 0 && i < 3; i++)
        pthread_create(&t, NULL, work, NULL);
    bool alone = argc > 2 && strcmp(argv[1], "alone") == 0;
    const char *way = argc > 1 + alone ? argv[1 + alone] : "";
    if (argc > 2 && strcmp(argv[argc - 1], "handled") == 0)
        handle(SIGSEGV);
    signal(SIGFPE, SIG_IGN);
    printf("%d\n", signal(SIGFPE, SIG_DFL) == SIG_IGN);
    printf("%d\n", signal(SIGILL, SIG_DFL) == SIG_DFL);
    fflush(stdout);
    usleep(150000);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(way, ways[i].name) == 0)
            ways[i].die();
    }
    return 2;
}
