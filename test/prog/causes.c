/*
 * Programs that are slow for a reason which is not where they wait longest: causes NAME
 * [half|fixed] runs one, with the slow part taking half as long, or without the reason, and prints
 * how long that took in ns. `gotrace why` must name the reason and predict what both bring.
 *
 * A device is a sleep: it takes the same time on any machine.
 */
#include "program.h"

enum { MS = 1000 };

static bool half, fixed;

/* The helper that all of these programs wait in: who calls it is what a reader wants to know. */
static __attribute__((noinline)) void device(long us)
{
    struct timespec length = {us / 1000000, us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
    __asm__ volatile("");
}

static __attribute__((noinline)) void compute(long us)
{
    uint64_t end = cpu_ns() + (uint64_t)us * 1000;
    while (cpu_ns() < end)
        ;
}

static long halved(long us)
{
    return half ? us / 2 : us;
}

/*
 * A timer wakes all workers for each item, and they look for it one after another with the lock
 * held. Fixed: it wakes one.
 */
enum { WORKERS = 8, ITEMS = 40 };
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ticked = PTHREAD_COND_INITIALIZER, taken = PTHREAD_COND_INITIALIZER;
static int items, ticks, looks, left = ITEMS;

static __attribute__((noinline)) bool look_for_item(void)
{
    device(halved(1 * MS));
    return items > 0;
}

static void *herd_worker(void *arg)
{
    pthread_mutex_lock(&table_lock);
    for (int seen = 0; left > 0;) {
        while (seen == ticks && left > 0)
            pthread_cond_wait(&ticked, &table_lock);
        seen = ticks;
        if (left > 0 && look_for_item()) {
            items--;
            left--;
        }
        if (++looks == (fixed ? 1 : WORKERS))
            pthread_cond_signal(&taken);
    }
    pthread_mutex_unlock(&table_lock);
    return arg;
}

static void *tick(void *arg)
{
    for (int i = 0; i < ITEMS; i++) {
        device(1 * MS);
        pthread_mutex_lock(&table_lock);
        items++;
        ticks++;
        if (fixed)
            pthread_cond_signal(&ticked);
        else
            pthread_cond_broadcast(&ticked);
        pthread_mutex_unlock(&table_lock);
        device(500);
        pthread_mutex_lock(&table_lock); /* the workers have it: so its holds are recorded */
        while (looks < (fixed ? 1 : WORKERS))
            pthread_cond_wait(&taken, &table_lock);
        looks = 0;
        pthread_mutex_unlock(&table_lock);
    }
    pthread_mutex_lock(&table_lock);
    left = 0;
    pthread_cond_broadcast(&ticked);
    pthread_mutex_unlock(&table_lock);
    return arg;
}

static void herd(void)
{
    pthread_t thread[WORKERS + 1];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&thread[i], NULL, herd_worker, NULL);
    pthread_create(&thread[WORKERS], NULL, tick, NULL);
    for (int i = 0; i <= WORKERS; i++)
        pthread_join(thread[i], NULL);
}

/* Main joins the slowest thread first, and then prints for each. Fixed: it is joined last. */
enum { PARTS = 5 };

static __attribute__((noinline)) void fetch(intptr_t part)
{
    device(part == 0 ? halved(200 * MS) : 30 * MS);
}

static __attribute__((noinline)) void print_part(void)
{
    device(35 * MS);
    __asm__ volatile("");
}

static void *fetcher(void *arg)
{
    fetch((intptr_t)arg);
    return NULL;
}

static void joins(void)
{
    pthread_t thread[PARTS];
    for (intptr_t i = 0; i < PARTS; i++)
        pthread_create(&thread[i], NULL, fetcher, (void *)i);
    for (int i = 0; i < PARTS; i++) {
        pthread_join(thread[fixed ? (i + 1) % PARTS : i], NULL);
        print_part();
    }
}

/*
 * A writer takes the next record only when the last one was written, and the thread that writes
 * asks now and then whether there is one: in "polled" every 6 ms, in "backoff" less and less often.
 * Fixed: it waits for it.
 */
enum { RECORDS = 20 };
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static bool full;
static long first_pause, longest_pause;

static __attribute__((noinline)) void make_record(void)
{
    device(halved(20 * MS));
    __asm__ volatile("");
}

static __attribute__((noinline)) void ask_for_record(void)
{
    for (long pause = first_pause;; pause = pause < longest_pause ? pause * 2 : pause) {
        pthread_mutex_lock(&record_lock);
        while (fixed && !full)
            pthread_cond_wait(&filled, &record_lock);
        bool found = full;
        full = false;
        if (found)
            pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&record_lock);
        if (found)
            return;
        device(pause);
    }
}

static void *record_maker(void *arg)
{
    for (int i = 0; i < RECORDS; i++) {
        make_record();
        pthread_mutex_lock(&record_lock);
        full = true;
        pthread_cond_signal(&filled);
        while (full)
            pthread_cond_wait(&emptied, &record_lock);
        pthread_mutex_unlock(&record_lock);
    }
    return arg;
}

static void *record_writer(void *arg)
{
    for (int i = 0; i < RECORDS; i++)
        ask_for_record();
    return arg;
}

static void make_and_write(long first, long longest)
{
    pthread_t thread[2];
    first_pause = first;
    longest_pause = longest;
    pthread_create(&thread[0], NULL, record_maker, NULL);
    pthread_create(&thread[1], NULL, record_writer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

static void backoff(void)
{
    make_and_write(1 * MS, 32 * MS);
}

static void polled(void)
{
    make_and_write(7 * MS, 7 * MS);
}

/* Two threads ask a pool of four and wait for the answer: more threads would only wait for work. */
enum { ASKERS = 2, ANSWERERS = 4, QUESTIONS = 40 };
static pthread_mutex_t question_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int questions, answers, closed;

static __attribute__((noinline)) void find_answer(void)
{
    device(halved(4 * MS));
    __asm__ volatile("");
}

static void *answerer(void *arg)
{
    pthread_mutex_lock(&question_lock);
    for (;;) {
        while (!questions && !closed)
            pthread_cond_wait(&asked, &question_lock);
        if (!questions)
            break;
        questions--;
        pthread_mutex_unlock(&question_lock);
        find_answer();
        pthread_mutex_lock(&question_lock);
        answers++;
        pthread_cond_signal(&answered);
    }
    pthread_mutex_unlock(&question_lock);
    return arg;
}

static void *asker(void *arg)
{
    for (int i = 0; i < QUESTIONS; i++) {
        device(1 * MS);
        pthread_mutex_lock(&question_lock);
        questions++;
        pthread_cond_signal(&asked);
        while (!answers)
            pthread_cond_wait(&answered, &question_lock);
        answers--;
        pthread_mutex_unlock(&question_lock);
    }
    return arg;
}

static void answers_of_pool(void)
{
    pthread_t thread[ASKERS + ANSWERERS];
    for (int i = 0; i < ASKERS + ANSWERERS; i++)
        pthread_create(&thread[i], NULL, i < ASKERS ? asker : answerer, NULL);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(thread[i], NULL);
    pthread_mutex_lock(&question_lock);
    closed = 1;
    pthread_cond_broadcast(&asked);
    pthread_mutex_unlock(&question_lock);
    for (int i = ASKERS; i < ASKERS + ANSWERERS; i++)
        pthread_join(thread[i], NULL);
}

/*
 * Eight threads have a part of the work each, and one part takes three times as long. Fixed: all
 * parts are alike.
 */
static __attribute__((noinline)) void do_part(intptr_t which)
{
    long part = which == 5 ? halved(12 * MS) : 4 * MS;
    device(fixed ? 5 * MS : part);
    __asm__ volatile("");
}

static void *part_thread(void *arg)
{
    for (int i = 0; i < 20; i++)
        do_part((intptr_t)arg);
    return NULL;
}

static void parts(void)
{
    pthread_t thread[8];
    for (intptr_t i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, part_thread, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

/*
 * Two processes use one table behind a lock that both have. Fixed: the slow one prepares its change
 * before it takes the lock.
 */
static __attribute__((noinline)) void change_table(void)
{
    device(halved(6 * MS));
    __asm__ volatile("");
}

static __attribute__((noinline)) void read_table(void)
{
    device(1 * MS);
    __asm__ volatile("");
}

static void use_table(pthread_mutex_t *lock, void (*use)(void), bool outside)
{
    for (int i = 0; i < 40; i++) {
        if (outside)
            use();
        pthread_mutex_lock(lock);
        if (!outside)
            use();
        pthread_mutex_unlock(lock);
        device(300);
    }
}

static void *table_reader(void *arg)
{
    use_table(arg, read_table, false);
    return NULL;
}

static void processes(void)
{
    pthread_mutex_t *lock =
        mmap(NULL, sizeof *lock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(lock, &shared);
    pid_t child = fork();
    if (child == 0) {
        use_table(lock, change_table, fixed);
        exit(0);
    }
    RUN_THREADS(1, table_reader, lock);
    waitpid(child, NULL, 0);
}

/*
 * The holder of a lock computes on a CPU that other processes use, too: it has the lock for longer
 * than it computes. Fixed: no other process uses that CPU.
 */
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void rebuild_index(void)
{
    compute(halved(5 * MS));
    __asm__ volatile("");
}

static void *index_holder(void *arg)
{
    for (int i = 0; i < 25; i++) {
        pthread_mutex_lock(&index_lock);
        rebuild_index();
        pthread_mutex_unlock(&index_lock);
        device(200);
    }
    return arg;
}

static void *index_reader(void *arg)
{
    for (int i = 0; i < 25; i++) {
        pthread_mutex_lock(&index_lock);
        device(100);
        pthread_mutex_unlock(&index_lock);
        device(1 * MS);
    }
    return arg;
}

static void starved(void)
{
    enum { OTHERS = 3 };
    pid_t other[OTHERS];
    cpu_set_t one;
    sched_getaffinity(0, sizeof one, &one);
    for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &one) && found++)
            CPU_CLR(cpu, &one);
    }
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; !fixed && i < OTHERS; i++) {
        if ((other[i] = fork()) == 0)
            for (;;)
                compute(10 * MS);
    }
    pthread_t thread[2];
    pthread_create(&thread[0], NULL, index_holder, NULL);
    pthread_create(&thread[1], NULL, index_reader, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; !fixed && i < OTHERS; i++) {
        kill(other[i], SIGKILL);
        waitpid(other[i], NULL, 0);
    }
}

/*
 * Each of four customers asks a clerk of its own for a price, through a socket or a condition
 * variable, while it holds the price list's lock, so that one clerk works at a time. Fixed: it asks
 * before it takes the lock.
 */
enum { CUSTOMERS = 4, ORDERS = 80 };

struct desk {
    int socket[2];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int asked, answered; /* questions and answers so far */
};
static struct desk desk[CUSTOMERS];
static pthread_mutex_t price_lock = PTHREAD_MUTEX_INITIALIZER;
static bool by_socket;
static _Atomic int next_order;

static __attribute__((noinline)) void find_price(void)
{
    device(halved(4 * MS));
    __asm__ volatile("");
}

static void *clerk(void *arg)
{
    struct desk *its = arg;
    char c;
    while (by_socket && read(its->socket[1], &c, 1) == 1) {
        find_price();
        if (write(its->socket[1], &c, 1) != 1)
            abort();
    }
    for (int i = 1; !by_socket && i <= ORDERS / CUSTOMERS; i++) {
        pthread_mutex_lock(&its->lock);
        while (its->asked < i)
            pthread_cond_wait(&its->changed, &its->lock);
        pthread_mutex_unlock(&its->lock);
        find_price();
        pthread_mutex_lock(&its->lock);
        its->answered++;
        pthread_cond_signal(&its->changed);
        pthread_mutex_unlock(&its->lock);
    }
    return NULL;
}

static __attribute__((noinline)) void ask_clerk(struct desk *its)
{
    char c = 0;
    if (by_socket) {
        if (write(its->socket[0], &c, 1) != 1 || read(its->socket[0], &c, 1) != 1)
            abort();
        return;
    }
    pthread_mutex_lock(&its->lock);
    int question = ++its->asked;
    pthread_cond_signal(&its->changed);
    while (its->answered < question)
        pthread_cond_wait(&its->changed, &its->lock);
    pthread_mutex_unlock(&its->lock);
}

static __attribute__((noinline)) void get_price(struct desk *its)
{
    if (fixed)
        ask_clerk(its);
    pthread_mutex_lock(&price_lock);
    if (!fixed)
        ask_clerk(its);
    pthread_mutex_unlock(&price_lock);
}

/*
 * Through sockets, customers take the next order there is; else each has an equal part of them.
 * Between two orders a customer rests, so that another one gets the lock.
 */
static void *customer(void *arg)
{
    for (int i = 0; by_socket ? next_order++ < ORDERS : i < ORDERS / CUSTOMERS; i++) {
        get_price(arg);
        device(MS / 2);
    }
    if (by_socket)
        shutdown(((struct desk *)arg)->socket[0], SHUT_WR);
    return NULL;
}

static void desks(void)
{
    pthread_t thread[2 * CUSTOMERS];
    for (int i = 0; i < CUSTOMERS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, desk[i].socket) != 0)
            abort();
        pthread_mutex_init(&desk[i].lock, NULL);
        pthread_cond_init(&desk[i].changed, NULL);
        pthread_create(&thread[2 * i], NULL, clerk, &desk[i]);
        pthread_create(&thread[2 * i + 1], NULL, customer, &desk[i]);
    }
    for (int i = 0; i < 2 * CUSTOMERS; i++)
        pthread_join(thread[i], NULL);
}

static void sockets(void)
{
    by_socket = true;
    desks();
}

static const struct {
    const char *name;
    void (*run)(void);
} causes[] = {
    {"herd", herd},       {"joins", joins},         {"backoff", backoff},
    {"polled", polled},   {"processes", processes}, {"answers", answers_of_pool},
    {"parts", parts},     {"starved", starved},     {"desks", desks},
    {"sockets", sockets},
};

int main(int argc, char **argv)
{
    half = argc > 2 && strcmp(argv[2], "half") == 0;
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof causes / sizeof *causes; i++) {
        if (strcmp(causes[i].name, argv[1]) != 0)
            continue;
        uint64_t begin = now_ns();
        causes[i].run();
        printf("%llu\n", (unsigned long long)(now_ns() - begin));
        return 0;
    }
    return 2;
}
