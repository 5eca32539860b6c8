/*
 * Threads that use CPUs in ways that no event tells: account KIND=COUNT..., see `kinds`. When its
 * standard input ends each thread says what the kernel has counted of it: thread, kind, ns on CPUs,
 * ns in run queues, voluntary switches, involuntary ones, pages read, ns that it waited by its own
 * clock, and ns since it began. It looks itself, between two turns: then it is not in a run queue,
 * whose time the kernel would not have counted yet. Then the program ends, with all of them
 * still at it.
 */
#include "program.h"

static void spin(void)
{
    compute_ns(1000000);
}

static void pinned(void)
{
    static __thread int done;
    if (!done)
        done = 1 + stay_on(0);
    compute_ns(1000000);
}

static __thread unsigned long waited;

static void doze(void)
{
    unsigned long since = now_ns();
    nanosleep(&(struct timespec){0, 5000000}, NULL);
    waited += now_ns() - since;
}

/* As code that calls the kernel itself, past any hook. */
static void hidden(void)
{
    static const struct timespec time = {0, 20000000};
    unsigned long since = now_ns();
#if defined __x86_64__
    long r = SYS_nanosleep;
    __asm__ volatile("syscall" : "+a"(r) : "D"(&time), "S"(NULL) : "rcx", "r11", "memory");
#elif defined __aarch64__
    register long number __asm__("x8") = SYS_nanosleep;
    register const void *a __asm__("x0") = &time, *b __asm__("x1") = NULL;
    __asm__ volatile("svc 0" : "+r"(a) : "r"(number), "r"(b) : "memory");
#endif
    waited += now_ns() - since;
    compute_ns(5000000);
}

/* Pages of a file that memory does not hold. */
static void fault(void)
{
    enum { SIZE = 4 << 20 };
    static __thread int fd = -1;
    char name[] = "account-XXXXXX";
    static char bytes[SIZE];
    if (fd < 0) {
        fd = mkstemp(name);
        unlink(name);
        if (write(fd, bytes, SIZE) != SIZE || fsync(fd) != 0)
            abort();
    }
    posix_fadvise(fd, 0, SIZE, POSIX_FADV_DONTNEED);
    volatile char *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    madvise((void *)p, SIZE, MADV_RANDOM);
    for (int i = 0; i < SIZE; i += 4096)
        (void)p[i];
    munmap((void *)p, SIZE);
}

static void *brief(void *arg)
{
    compute_ns(2000000);
    return arg;
}

static void brood(void)
{
    RUN_THREADS(1, brief, NULL);
}

static const struct kind {
    const char *name;
    void (*turn)(void);
} kinds[] = {{"spin", spin},     {"pinned", pinned}, {"sleep", doze},
             {"hidden", hidden}, {"fault", fault},   {"brood", brood}};

enum { MOST = 4000 };
static char said[MOST][128];
static int n, ending;
static pthread_barrier_t begun;
static sem_t have_said;

static void read_file(pid_t tid, const char *name, char text[4096])
{
    char path[64];
    sprintf(path, "/proc/self/task/%d/%s", tid, name);
    int fd = open(path, O_RDONLY);
    ssize_t bytes = fd < 0 ? 0 : read(fd, text, 4095);
    text[bytes > 0 ? bytes : 0] = 0;
    close(fd);
}

static void tell(char line[128], const char *name, unsigned long since)
{
    char schedstat[4096], status[4096], stat[4096];
    unsigned long cpu = 0, queue = 0, faults = 0;
    pid_t tid = gettid();
    read_file(tid, "status", status);
    read_file(tid, "stat", stat);
    read_file(tid, "schedstat", schedstat);
    const char *switches = strstr(status, "\nvoluntary"), *end = strrchr(stat, ')');
    if (sscanf(schedstat, "%lu %lu", &cpu, &queue) != 2) /* /proc is not there */
        cpu = cpu_ns();
    sscanf(end ? end : "", ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %lu", &faults);
    sprintf(line, "%d %s %lu %lu %ld %ld %lu %lu %lu\n", tid, name, cpu, queue,
            switches ? atol(strchr(switches, ':') + 1) : 0,
            switches ? atol(strchr(strchr(switches, ':') + 1, ':') + 1) : 0, faults, waited,
            now_ns() - since);
}

static void *run(void *arg)
{
    const struct kind *kind = arg;
    unsigned long since = now_ns();
    int i = __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED);
    pthread_setname_np(pthread_self(), kind->name);
    pthread_barrier_wait(&begun);
    while (!__atomic_load_n(&ending, __ATOMIC_RELAXED))
        kind->turn();
    tell(said[i], kind->name, since);
    sem_post(&have_said);
    for (;;)
        kind->turn();
    return NULL;
}

static void start(char *word)
{
    char *count = strchr(word, '=');
    *count++ = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int i = 0; strcmp(word, kinds[k].name) == 0 && i < atoi(count); i++) {
            pthread_t t;
            pthread_attr_t attr;
            pthread_attr_init(&attr);
            pthread_attr_setstacksize(&attr, 256 << 10);
            pthread_barrier_init(&begun, NULL, 2);
            if (pthread_create(&t, &attr, run, (void *)&kinds[k]) != 0)
                abort();
            pthread_barrier_wait(&begun);
        }
    }
}

int main(int argc, char **argv)
{
    char c, line[128];
    unsigned long since = now_ns();
    for (int i = 1; i < argc; i++)
        start(argv[i]);
    printf("ready\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &c, 1) == 1)
        ;
    __atomic_store_n(&ending, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < n; i++)
        sem_wait(&have_said);
    tell(line, "main", since);
    fputs(line, stdout);
    for (int i = 0; i < n; i++)
        fputs(said[i], stdout);
    return 0;
}
