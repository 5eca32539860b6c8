/*
 * OpenMP threads that wait for known times. Prints the truth, a line for each wait:
 *   <what> <source line> <waiter> <waker> <ns that it took> <ns of it that the program arranged>
 * waiter and waker are kernel threads; a waker of 0: not known. The arranged part is the waker's
 * sleep; the rest is the machine's. Built with gcc and with clang.
 */
#include "../prog/truth.h"

#include <omp.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { TEAM = 3 };

static struct row {
    const char *what;
    int line, waiter, waker;
    uint64_t ns, arranged;
} rows[1000];
static _Atomic int n_rows;

static void row(const char *what, int line, int waiter, int waker, uint64_t ns, uint64_t arranged)
{
    rows[n_rows++] = (struct row){what, line, waiter, waker, ns, arranged};
}

/* Asleep in the kernel, by a call that no hook sees. */
static void rest(uint64_t ms)
{
    struct timespec ts = {0, (long)(ms * MS)};
    RAW(SYS_nanosleep, &ts, NULL);
}

static uint64_t thread_cpu_ns(int thread)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", thread);
    long fd = RAW(SYS_openat, AT_FDCWD, path, O_RDONLY);
    RAW(SYS_read, fd, text, sizeof text - 1);
    RAW(SYS_close, fd);
    return strtoull(text, NULL, 10);
}

/* Until a thread that is about to wait does so: it sleeps, or has spun for a while. */
static void until_waits(_Atomic int *thread)
{
    while (!*thread)
        rest(1);
    uint64_t before = thread_cpu_ns(*thread);
    while (state_of(*thread) != 'S' && thread_cpu_ns(*thread) - before < 3 * MS)
        rest(1);
}

/* The threads of a team come to a place one after the other. */
static struct {
    _Atomic int tid;
    uint64_t came, waits, went;
} at[TEAM];

/* In that order: thread `first` does not wait for anybody. */
static void come(int self, int first)
{
    int before = (self + TEAM - 1) % TEAM;
    if (self != first) {
        until_waits(&at[before].tid);
        at[before].waits = now();
        rest(20);
    }
    at[self].came = now();
    at[self].tid = tid();
}

static void went(void)
{
    at[omp_get_thread_num()].went = now();
}

/* Who came last let all others go on, at that time. */
static void rows_of_team(const char *what, int line, int first)
{
    int last = (first + TEAM - 1) % TEAM;
    for (int i = 0; i < TEAM; i++) {
        if (i != last)
            row(what, line, at[i].tid, at[last].tid, (at[i].went ? at[i].went : now()) - at[i].came,
                at[last].came - at[i].waits);
    }
    memset(at, 0, sizeof at);
}

static void barrier(void)
{
    int line = 0;
    for (int round = 0; round < TEAM; round++) {
#pragma omp parallel num_threads(TEAM)
        {
            come(omp_get_thread_num(), round);
            line = __LINE__ + 1;
#pragma omp barrier
            went();
        }
        rows_of_team("barrier", line, round);
    }
}

/* A loop whose iterations are not of the same length, the end of which is that of the region. */
static void loop(void)
{
    int line = 0;
    for (int round = 0; round < TEAM; round++) {
        line = __LINE__ + 1;
#pragma omp parallel for num_threads(TEAM) schedule(static, 1)
        for (int i = 0; i < TEAM; i++)
            come(i, round);
        rows_of_team("end", line, round);
        rest(30);
    }
}

/* Regions in which nothing happens, and which compilers keep nevertheless. */
static void empty(void)
{
    for (int round = 0; round < 4; round++) {
#pragma omp parallel num_threads(TEAM)
        __asm__ volatile("");
        rest(30);
    }
}

static _Atomic int holder, waiter;
static uint64_t waits, given_up;

/* The first of two threads has it while the other one wants it. */
static void have(void)
{
    if (holder)
        return;
    holder = tid();
    until_waits(&waiter);
    waits = now();
    rest(30);
    given_up = now();
}

#define LOCKED(what, take, give)                                                      \
    {                                                                                 \
        holder = waiter = 0;                                                          \
        _Pragma("omp parallel num_threads(2)")                                        \
        {                                                                             \
            bool first = omp_get_thread_num() == 0;                                   \
            while (!first && !holder)                                                 \
                rest(1);                                                              \
            uint64_t begin = now();                                                   \
            if (!first)                                                               \
                waiter = tid();                                                       \
            take have();                                                              \
            if (!first)                                                               \
                row(what, __LINE__, waiter, holder, now() - begin, given_up - waits); \
            give                                                                      \
        }                                                                             \
    }

static omp_lock_t lock;
static omp_nest_lock_t nest;
#define TWICE(call) call, call;
#define BEGIN {
#define END }

static void locks(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest);
    LOCKED("lock", omp_set_lock(&lock);, omp_unset_lock(&lock);)
    LOCKED("nest_lock", TWICE(omp_set_nest_lock(&nest)), TWICE(omp_unset_nest_lock(&nest)))
    LOCKED("critical", _Pragma("omp critical") BEGIN, END)
    LOCKED("named", _Pragma("omp critical(name)") BEGIN, END)
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest);
}

static _Atomic int runner, maker;

/* One thread makes a task, the other one does it, inside its wait for the first one. */
static void tasks(void)
{
    uint64_t begun = 0, waited = 0, ended = 0;
    int line = 0;
    runner = maker = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        {
#pragma omp task
            {
                runner = tid();
                until_waits(&maker);
                begun = now();
                rest(40);
                ended = now();
            }
            while (!runner)
                rest(1);
            waited = now();
            maker = tid();
            line = __LINE__ + 1;
#pragma omp taskwait
            row("taskwait", line, maker, 0, now() - waited, ended - begun);
        }
    }
    row("task", 0, runner, 0, ended - begun, 40 * MS); /* which is no wait */
}

static void nested(void)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1) {
#pragma omp parallel num_threads(TEAM)
            {
                come(omp_get_thread_num(), 0);
#pragma omp barrier
                went();
            }
        }
    }
    rows_of_team("barrier", 0, 0);
    omp_set_max_active_levels(1);
}

static void ordered(void)
{
    holder = waiter = 0;
#pragma omp parallel for ordered num_threads(2) schedule(static, 1)
    for (int i = 0; i < 2; i++) {
        uint64_t begin = now();
        if (i == 1)
            waiter = tid();
#pragma omp ordered
        {
            if (i == 0)
                have();
            else
                row("ordered", 0, waiter, 0, now() - begin, given_up - waits);
        }
    }
}

static int fibonacci(int n)
{
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

/* What must come out the same, whoever looks on: everything that is called in some other way. */
static void sums(void)
{
    long sum = 0, count = 0, criticals = 0, locked = 0, first = 0, sections = 0, found = -1;
    int fib = 0, given = 0;
    omp_lock_t own;
    omp_init_lock(&own);
    for (int round = 0; round < 50; round++) {
#pragma omp parallel for num_threads(4) reduction(+ : sum) schedule(runtime)
        for (int i = 0; i < 1000; i++)
            sum += i;
#pragma omp parallel num_threads(3) firstprivate(given)
        {
#pragma omp for schedule(guided) nowait
            for (int i = 0; i < 100; i++) {
#pragma omp atomic
                count++;
            }
#pragma omp critical
            criticals++;
            omp_set_lock(&own);
            locked++;
            omp_unset_lock(&own);
#pragma omp single copyprivate(given)
            given = round;
#pragma omp atomic
            first += given;
#pragma omp sections
            {
#pragma omp section
                {
#pragma omp atomic
                    sections++;
                }
#pragma omp section
                {
#pragma omp atomic
                    sections++;
                }
            }
#pragma omp single
            fib = fibonacci(12);
#pragma omp single
            {
#pragma omp taskloop grainsize(7)
                for (int i = 0; i < 100; i++) {
#pragma omp atomic
                    count++;
                }
            }
#pragma omp for
            for (int i = 0; i < 100; i++) {
                if (i == 50) {
                    found = i;
#pragma omp cancel for
                }
            }
        }
    }
    omp_destroy_lock(&own);
    printf("sums %ld %ld %ld %ld %ld %ld %d %ld\n", sum, count, criticals, locked, first, sections,
           fib, found);
}

/* A child without threads; and one that has its own before its parent has any. */
static void forks(void)
{
    for (int i = 0; i < 2; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            if (i == 0)
                sums();
            exit(3 + i);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
        sums();
    }
}

/* What nobody waits for: the cost of it, in ns. */
static void cost(void)
{
    enum { TIMES = 200000 };
    uint64_t begin = now();
    for (int i = 0; i < TIMES; i++) {
#pragma omp critical
        rows[0].line++;
    }
    uint64_t critical = now() - begin;
    begin = now();
    for (int i = 0; i < TIMES; i++) {
#pragma omp critical(name)
        rows[0].line++;
    }
    uint64_t named = now() - begin;
    int regions = TIMES / 20;
    begin = now();
    for (int i = 0; i < regions; i++) {
#pragma omp parallel num_threads(2)
        rows[omp_get_thread_num()].line++;
    }
    uint64_t region = now() - begin, barriers = 0, worked = 0;
#pragma omp parallel num_threads(2)
    {
        begin = now();
        for (int i = 0; i < regions; i++) {
#pragma omp barrier
        }
        barriers = now() - begin;
    }
    begin = now();
    for (int i = 0; i < regions / 10; i++) {
#pragma omp parallel num_threads(2)
        busy(100000);
    }
    worked = now() - begin;
    printf("critical %.1f named %.1f region %.0f barrier %.0f region of 100 us %.0f\n",
           (double)critical / TIMES, (double)named / TIMES, (double)region / regions,
           (double)barriers / regions, (double)worked / (regions / 10));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {{"barrier", barrier}, {"loop", loop},     {"locks", locks},
                  {"tasks", tasks},     {"nested", nested}, {"ordered", ordered},
                  {"empty", empty},     {"forks", forks},   {"cost", cost}};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        bool wait = scenes[i].run != forks && scenes[i].run != cost;
        if (argc > 1 ? strcmp(argv[1], scenes[i].name) == 0 : wait)
            scenes[i].run();
    }
    for (int i = 0; i < n_rows; i++)
        printf("%s %d %d %d %llu %llu\n", rows[i].what, rows[i].line, rows[i].waiter, rows[i].waker,
               (unsigned long long)rows[i].ns, (unsigned long long)rows[i].arranged);
    return 0;
}
