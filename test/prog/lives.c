/*
 * lives KIND: threads that say at their end what the kernel has counted of them. Prints for each
 * "tid life cpu queue", in ns: how long it lived by its own clock, its CPU time, and its time in
 * run queues, -1 where the kernel does not count that. burn: six compute for 2 s. mix: five compute
 * and sleep in turns, as long. fork: two of each for 0.5 s; meanwhile the process forks, and the
 * child makes four more; the child's first thread tells, too. short: 1,000 that take turns compute
 * for 2 ms, and the tid is 0: only the sum is said.
 */
#include "program.h"

static long run_ns = 2000000000;
enum { SHORT_NS = 2000000, SHORT = 1000, AT_ONCE = 4, MOST = 6 };

static _Atomic long short_life, short_cpu;

/* -1: the kernel does not count it. */
static long queue_of(int tid)
{
    char path[64], line[128] = "";
    long queue = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file))
        sscanf(line, "%*d %ld", &queue);
    if (file)
        fclose(file);
    return queue;
}

/* Since `begin`, when it had been in run queues for `queued` ns. The numbers are of one moment:
 * where the thread lost its CPU between them they are read again. */
static void tell_since(long begin, long queued)
{
    enum { TOGETHER_NS = 1000000 };
    long life, cpu, queue, until;
    do {
        life = now_ns() - begin;
        queue = queue_of(gettid());
        cpu = cpu_ns();
        until = now_ns() - begin;
    } while (until - life > TOGETHER_NS);
    printf("%d %ld %ld %ld\n", gettid(), life, cpu, queue - queued);
    fflush(stdout);
}

static void tell(long begin)
{
    tell_since(begin, 0);
}

static void *burn(void *arg)
{
    long begin = now_ns();
    while ((long)now_ns() - begin < run_ns)
        ;
    tell(begin);
    return arg;
}

static void *mix(void *arg)
{
    long begin = now_ns(), ms = 1 + (long)arg;
    while ((long)now_ns() - begin < run_ns) {
        compute_ns((uint64_t)ms * 1000000);
        usleep((useconds_t)(1000 + 1000 * ms));
    }
    tell(begin);
    return arg;
}

static void *live_shortly(void *arg)
{
    long begin = now_ns();
    while ((long)now_ns() - begin < SHORT_NS)
        ;
    atomic_fetch_add(&short_cpu, cpu_ns());
    atomic_fetch_add(&short_life, now_ns() - begin);
    return arg;
}

static void run(void *(*routine)(void *), long n)
{
    pthread_t t[MOST];
    for (long i = 0; i < n; i++)
        pthread_create(&t[i], NULL, routine, (void *)i);
    for (long i = 0; i < n; i++)
        pthread_join(t[i], NULL);
}

static void *burn_or_mix(void *arg)
{
    return (long)arg % 2 ? burn(arg) : mix(arg);
}

static void *run_four(void *arg)
{
    run(burn_or_mix, 4);
    return arg;
}

static void fork_meanwhile(void)
{
    pthread_t others;
    run_ns = 500000000;
    pthread_create(&others, NULL, run_four, NULL);
    compute_ns(100000000); /* all of them are there when it forks */
    pid_t child = fork();
    if (child == 0)
        pthread_create(&others, NULL, run_four, NULL); /* with it the child's trace begins */
    long begin = now_ns(), queued = queue_of(gettid());
    pthread_join(others, NULL);
    if (child == 0)
        tell_since(begin, queued);
    else
        waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "burn") == 0) {
        run(burn, MOST);
    } else if (strcmp(argv[1], "mix") == 0) {
        run(mix, MOST - 1);
    } else if (strcmp(argv[1], "fork") == 0) {
        fork_meanwhile();
    } else {
        for (int i = 0; i < SHORT / AT_ONCE; i++)
            run(live_shortly, AT_ONCE);
        printf("0 %ld %ld -1\n", short_life, short_cpu);
    }
    return 0;
}
