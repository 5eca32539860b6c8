/*
 * OpenMP threads that wait for known times. Prints the truth, a line for each wait:
 *   <what> <source line> <waiter> <waker> <ns that it took> <ns of it that the program arranged>
 * waiter and waker are kernel threads; a waker of 0: not known. What was arranged is sleep of the
 * one who is waited for; the rest is the machine's. Built with gcc and with clang.
 */
#include "truth.h"

#include <omp.h>
#include <stdbool.h>

enum { TEAM = 3, ROUNDS = 3 };

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

/* Each thread of a team says when it came to a place, and when it went on. */
static struct {
    int tid;
    uint64_t came, went;
} at[TEAM];

static void came(void)
{
    at[omp_get_thread_num()].tid = tid();
    at[omp_get_thread_num()].came = now();
}

static void went(void)
{
    at[omp_get_thread_num()].went = now();
}

/* Who came last let all others go on, at that time. */
static void rows_of_team(const char *what, int line)
{
    int last = 0;
    for (int i = 1; i < TEAM; i++)
        last = at[i].came > at[last].came ? i : last;
    for (int i = 0; i < TEAM; i++) {
        uint64_t arranged = at[last].came - at[i].came;
        uint64_t ns = at[i].went ? at[i].went - at[i].came : arranged + MS;
        if (i != last)
            row(what, line, at[i].tid, at[last].tid, ns, arranged);
    }
    memset(at, 0, sizeof at);
}

static void barrier(void)
{
    int line = 0;
    for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(TEAM)
        {
            rest(20 * (unsigned)((omp_get_thread_num() + round) % TEAM));
            came();
            line = __LINE__ + 1;
#pragma omp barrier
            went();
#pragma omp barrier
        }
        rows_of_team("barrier", line);
    }
}

/* A loop whose iterations are not of the same length, the end of which is that of the region. */
static void loop(void)
{
    int line = 0;
    for (int round = 0; round < ROUNDS; round++) {
        line = __LINE__ + 1;
#pragma omp parallel for num_threads(TEAM) schedule(static, 1)
        for (int i = 0; i < TEAM; i++) {
            rest(20 * (unsigned)((i + round) % TEAM));
            came();
        }
        rows_of_team("end", line);
        uint64_t begin = now();
        rest(20);
        row("idle", 0, 0, 0, now() - begin, 20 * MS);
    }
}

/* The end of a loop within a region. */
static void inner_loop(void)
{
    int line = 0;
#pragma omp parallel num_threads(TEAM)
    {
        line = __LINE__ + 1;
#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < TEAM; i++) {
            rest(15 * (unsigned)i);
            came();
        }
        went();
#pragma omp barrier
    }
    (void)line;
    memset(at, 0, sizeof at);
}

static _Atomic int holder, waiter;
static uint64_t given_up;

/* The first of two threads has it while the other one wants it. */
static void have(void)
{
    if (holder) {
        return;
    }
    holder = tid();
    while (!waiter)
        busy(10000);
    rest(40);
    given_up = now();
}

#define LOCKED(what, take, give)                                                   \
    {                                                                              \
        holder = waiter = 0;                                                       \
        _Pragma("omp parallel num_threads(2)")                                     \
        {                                                                          \
            bool first = omp_get_thread_num() == 0;                                \
            while (!first && !holder)                                              \
                busy(10000);                                                       \
            uint64_t begin = now();                                                \
            if (!first)                                                            \
                waiter = tid();                                                    \
            take have();                                                           \
            if (!first)                                                            \
                row(what, __LINE__, waiter, holder, now() - begin, given_up - begin); \
            give                                                                   \
        }                                                                          \
    }

static omp_lock_t lock;
static omp_nest_lock_t nest_lock;

static void locks(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nest_lock);
    LOCKED("lock", omp_set_lock(&lock);, omp_unset_lock(&lock);)
    LOCKED("nest_lock", omp_set_nest_lock(&nest_lock); omp_set_nest_lock(&nest_lock);
           , omp_unset_nest_lock(&nest_lock); omp_unset_nest_lock(&nest_lock);)
    LOCKED("critical", _Pragma("omp critical") {, })
    LOCKED("named", _Pragma("omp critical(name)") {, })
    omp_destroy_lock(&lock);
    omp_destroy_nest_lock(&nest_lock);
}

static _Atomic int runner;

/* One thread makes a task, the other one does it, inside its wait for the first one. */
static void tasks(void)
{
    uint64_t begun = 0, waited = 0, ended = 0;
    int maker = 0, line = 0;
    runner = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        {
            maker = tid();
#pragma omp task
            {
                runner = tid();
                begun = now();
                rest(40);
                ended = now();
            }
            while (!runner)
                busy(10000);
            waited = now();
            line = __LINE__ + 1;
#pragma omp taskwait
            row("taskwait", line, maker, 0, now() - waited, ended - waited);
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
                rest(20 * (unsigned)omp_get_thread_num());
                came();
#pragma omp barrier
                went();
#pragma omp barrier
            }
        }
    }
    rows_of_team("barrier", 0);
    omp_set_max_active_levels(1);
}

static void ordered(void)
{
    uint64_t waited[TEAM] = {0}, turn[TEAM] = {0}, done[TEAM] = {0};
    int tids[TEAM] = {0};
#pragma omp parallel for ordered num_threads(TEAM) schedule(static, 1)
    for (int i = 0; i < TEAM; i++) {
        waited[i] = now();
        tids[i] = tid();
#pragma omp ordered
        {
            turn[i] = now();
            rest(20);
            done[i] = now();
        }
    }
    for (int i = 1; i < TEAM; i++)
        row("ordered", 0, tids[i], 0, turn[i] - waited[i], done[i - 1] - waited[i]);
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
    } scenes[] = {{"barrier", barrier}, {"loop", loop},       {"inner_loop", inner_loop},
                  {"locks", locks},     {"tasks", tasks},     {"nested", nested},
                  {"ordered", ordered}, {"cost", cost}};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (argc > 1 ? strcmp(argv[1], scenes[i].name) == 0 : scenes[i].run != cost)
            scenes[i].run();
    }
    for (int i = 0; i < n_rows; i++)
        printf("%s %d %d %d %llu %llu\n", rows[i].what, rows[i].line, rows[i].waiter, rows[i].waker,
               (unsigned long long)rows[i].ns, (unsigned long long)rows[i].arranged);
    return 0;
}
