/*
 * Programs with a known reason for being slow: whys NAME [fixed] runs one, without its reason if it
 * is to be fixed, and prints how long that took in ns. whys lists them: the name, what `gotrace
 * why` is to name first, a part of its words, and whether the longest wait misleads.
 *
 * A device is a sleep: it takes the same time on any machine.
 */
#include "program.h"
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/timerfd.h>

enum { MS = 1000 };

static bool fixed;

/* In the function that uses it: its name is the place. */
#define DEVICE(us)                                                          \
    do {                                                                    \
        struct timespec length_ = {(us) / 1000000, (us) % 1000000 * 1000L}; \
        clock_nanosleep(CLOCK_MONOTONIC, 0, &length_, NULL);                \
    } while (0)

#define COMPUTE(us)                            \
    do {                                       \
        uint64_t end_ = cpu_ns() + (us)*1000u; \
        while (cpu_ns() < end_)                \
            ;                                  \
    } while (0)

#define HALF(us) ((us) / (fixed ? 2 : 1))

static void run_threads(int n, void *(*routine)(void *))
{
    pthread_t thread[16];
    for (intptr_t i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, routine, (void *)i);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

/* A queue of numbers, bounded or not; -1 is its end. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int item[512], first, n, room;
};

#define QUEUE(most)                                                                               \
    {                                                                                             \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0, \
            most                                                                                  \
    }

static void put(struct queue *q, int item)
{
    pthread_mutex_lock(&q->lock);
    while (q->n == q->room)
        pthread_cond_wait(&q->emptied, &q->lock);
    q->item[(q->first + q->n++) % 512] = item;
    pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
}

static int take(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->n)
        pthread_cond_wait(&q->filled, &q->lock);
    int item = q->item[q->first];
    q->first = (q->first + 1) % 512;
    q->n--;
    pthread_cond_signal(&q->emptied);
    pthread_mutex_unlock(&q->lock);
    return item;
}

/* Locks ---------------------------------------------------------------------------------------- */

/* The disk is waited for with the lock held. */
static pthread_mutex_t journal_lock[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                          PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void write_journal(int who)
{
    pthread_mutex_t *lock = &journal_lock[fixed ? who : 0];
    pthread_mutex_lock(lock);
    DEVICE(3 * MS);
    pthread_mutex_unlock(lock);
}

DO(serve_request, DEVICE(1 * MS))

static void *journal_worker(void *arg)
{
    for (int i = 0; i < 25; i++) {
        serve_request();
        write_journal((int)(intptr_t)arg);
    }
    return NULL;
}

DO(journal, run_threads(4, journal_worker))

/*
 * All wait for the outer lock, whose holder waits for the inner one. While the flusher lets go of
 * the inner one, each updater takes both locks once. It comes back when the flusher has the inner
 * one again, each time another one first. So no race decides how long the run takes.
 */
static pthread_mutex_t outer_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile bool flushing;

static void *flusher(void *arg)
{
    while (flushing) {
        if (!fixed)
            pthread_mutex_lock(&inner_lock);
        DEVICE(8 * MS);
        if (!fixed)
            pthread_mutex_unlock(&inner_lock);
        DEVICE(2 * MS);
    }
    return arg;
}

static void update_inner(void)
{
    pthread_mutex_lock(&inner_lock);
    DEVICE(200);
    pthread_mutex_unlock(&inner_lock);
}

static void *updater(void *arg)
{
    for (int i = 0; i < 12; i++) {
        pthread_mutex_lock(&outer_lock);
        update_inner();
        pthread_mutex_unlock(&outer_lock);
        DEVICE(4 * MS + (i + (intptr_t)arg) % 3 * 500);
    }
    return NULL;
}

static void nested(void)
{
    pthread_t thread;
    flushing = true;
    pthread_create(&thread, NULL, flusher, NULL);
    DEVICE(1 * MS);
    run_threads(3, updater);
    flushing = false;
}

/* Many short holds, and a long one now and then. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void rotate_log(void)
{
    pthread_mutex_lock(&log_lock);
    DEVICE(HALF(30 * MS));
    pthread_mutex_unlock(&log_lock);
}

static void write_log(void)
{
    pthread_mutex_lock(&log_lock);
    pthread_mutex_unlock(&log_lock);
}

static void *logging_worker(void *arg)
{
    for (int i = 0; i < 20; i++) {
        DEVICE(1 * MS);
        write_log();
        if (!arg && i % 3 == 0)
            rotate_log();
    }
    return NULL;
}

DO(rotation, run_threads(4, logging_worker))

/* Readers wait for a writer that computes nothing. */
static pthread_rwlock_t map_lock = PTHREAD_RWLOCK_INITIALIZER;
static volatile bool reading;

static void rebuild_map(void)
{
    if (fixed)
        DEVICE(10 * MS);
    pthread_rwlock_wrlock(&map_lock);
    if (!fixed)
        DEVICE(10 * MS);
    pthread_rwlock_unlock(&map_lock);
}

static void *map_writer(void *arg)
{
    while (reading) {
        rebuild_map();
        DEVICE(1 * MS);
    }
    return arg;
}

static void *map_reader(void *arg)
{
    for (int i = 0; i < 20; i++) {
        pthread_rwlock_rdlock(&map_lock);
        pthread_rwlock_unlock(&map_lock);
        DEVICE(2 * MS);
    }
    return arg;
}

static void readers(void)
{
    pthread_t thread;
    reading = true;
    pthread_create(&thread, NULL, map_writer, NULL);
    run_threads(3, map_reader);
    reading = false;
}

/* Queues ----------------------------------------------------------------------------------------
 */

/* Workers have nothing to do: what feeds them is slow. It reads, for who sleeps paces itself. */
static struct queue feed = QUEUE(512);
static int disk;

static void load_item(void)
{
    struct itimerspec length = {.it_value.tv_nsec = HALF(4 * MS) * 1000L};
    uint64_t block;
    timerfd_settime(disk, 0, &length, NULL);
    if (read(disk, &block, sizeof block) < 0)
        abort();
}

static void *fed_worker(void *arg)
{
    while (take(&feed) >= 0)
        DEVICE(1 * MS);
    return arg;
}

static void *feeder(void *arg)
{
    for (int i = 0; i < 50; i++) {
        load_item();
        put(&feed, i);
    }
    for (int i = 0; i < 6; i++)
        put(&feed, -1);
    return arg;
}

static void idle(void)
{
    pthread_t thread;
    disk = timerfd_create(CLOCK_MONOTONIC, 0);
    pthread_create(&thread, NULL, feeder, NULL);
    run_threads(6, fed_worker);
}

/* The same, of one that gives work when it is due. */
static void *metronome(void *arg)
{
    for (int i = 0; i < 60; i++) {
        DEVICE(3 * MS);
        put(&feed, i < 54 ? i : -1);
    }
    return arg;
}

static void paced(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, metronome, NULL);
    run_threads(6, fed_worker);
}

/* One thread answers all: who asks waits for that, and for no work. */
static pthread_mutex_t log_number = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t log_asked = PTHREAD_COND_INITIALIZER, log_synced = PTHREAD_COND_INITIALIZER;
static int logged, synced;

static void *log_syncer(void *arg)
{
    pthread_mutex_lock(&log_number);
    while (logged >= 0) {
        int until = logged;
        if (until == synced) {
            pthread_cond_wait(&log_asked, &log_number);
            continue;
        }
        pthread_mutex_unlock(&log_number);
        DEVICE(5 * MS);
        pthread_mutex_lock(&log_number);
        synced = until;
        pthread_cond_broadcast(&log_synced);
    }
    pthread_mutex_unlock(&log_number);
    return arg;
}

static void *log_client(void *arg)
{
    for (int i = 0; i < 30; i++) {
        DEVICE(1 * MS);
        pthread_mutex_lock(&log_number);
        int mine = ++logged;
        pthread_cond_signal(&log_asked);
        while (synced < mine)
            pthread_cond_wait(&log_synced, &log_number);
        pthread_mutex_unlock(&log_number);
    }
    return arg;
}

static void answers(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, log_syncer, NULL);
    run_threads(5, log_client);
    pthread_mutex_lock(&log_number);
    logged = -1;
    pthread_cond_signal(&log_asked);
    pthread_mutex_unlock(&log_number);
    pthread_join(thread, NULL);
}

/* Too few workers. */
static struct queue jobs = QUEUE(512);

DO(handle_job, DEVICE(5 * MS))

static void *pool_worker(void *arg)
{
    while (take(&jobs) >= 0)
        handle_job();
    return arg;
}

static void pool(void)
{
    int n = fixed ? 3 : 2;
    pthread_t thread[3];
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, pool_worker, NULL);
    DEVICE(1 * MS);
    for (int i = 0; i < 90; i++)
        put(&jobs, i);
    for (int i = 0; i < n; i++)
        put(&jobs, -1);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

/*
 * So few that who has work for them waits, and they never do. They begin apart: of two that always
 * end together the same one would end each of these waits.
 */
static struct queue few_jobs = QUEUE(4);

static void *busy_worker(void *arg)
{
    while (take(&few_jobs) >= 0)
        DEVICE(5 * MS);
    return arg;
}

static void full(void)
{
    int n = fixed ? 3 : 2;
    pthread_t thread[3];
    for (int i = 0; i < 4; i++)
        put(&few_jobs, i);
    for (int i = 0; i < n; i++) {
        pthread_create(&thread[i], NULL, busy_worker, NULL);
        DEVICE(5 * MS / n);
    }
    for (int i = 0; i < 76; i++) {
        DEVICE(500);
        put(&few_jobs, i);
    }
    for (int i = 0; i < n; i++)
        put(&few_jobs, -1);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

/* The same, of workers that hinder each other, by a lock of their own make. */
static int bare;

static void bare_lock_contended(void)
{
    while (__atomic_exchange_n(&bare, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &bare, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void bare_unlock(void)
{
    __atomic_store_n(&bare, 0, __ATOMIC_RELEASE);
    syscall(SYS_futex, &bare, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *hindered_worker(void *arg)
{
    while (take(&few_jobs) >= 0) {
        DEVICE(2 * MS);
        bare_lock_contended();
        DEVICE(3 * MS);
        bare_unlock();
    }
    return arg;
}

static void futex(void)
{
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, hindered_worker, NULL);
    for (int i = 0; i < 60; i++) {
        DEVICE(500);
        put(&few_jobs, i);
    }
    for (int i = 0; i < 3; i++)
        put(&few_jobs, -1);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

/* Three stages with little room between; the second is slow. */
static struct queue first_stage = QUEUE(2), second_stage = QUEUE(2);

DO(transform, DEVICE(HALF(4 * MS)))

static void *transformer(void *arg)
{
    int item;
    while ((item = take(&first_stage)) >= 0) {
        transform();
        put(&second_stage, item);
    }
    put(&second_stage, -1);
    return arg;
}

static void *consumer(void *arg)
{
    while (take(&second_stage) >= 0)
        DEVICE(1 * MS);
    return arg;
}

static void *source(void *arg)
{
    for (int i = 0; i < 60; i++) {
        DEVICE(1 * MS);
        put(&first_stage, i);
    }
    put(&first_stage, -1);
    return arg;
}

static void stages(void)
{
    void *(*const routine[])(void *) = {source, transformer, consumer};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, routine[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

/* Who commits waits for its turn; what all wait for is the compressing before. */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn;

static void compress(int who)
{
    DEVICE(HALF(who == 0 ? 16 * MS : 6 * MS));
}

static void commit_in_turn(int ticket)
{
    pthread_mutex_lock(&turn_lock);
    while (turn != ticket)
        pthread_cond_wait(&turn_changed, &turn_lock);
    pthread_mutex_unlock(&turn_lock);
    DEVICE(500);
    pthread_mutex_lock(&turn_lock);
    turn++;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&turn_lock);
}

static void *committer(void *arg)
{
    int who = (int)(intptr_t)arg;
    for (int i = 0; i < 15; i++) {
        compress(who);
        commit_in_turn(i * 4 + who);
    }
    return NULL;
}

DO(turns, run_threads(4, committer))

/* Two reply to each other. */
static sem_t ping, pong;

DO(answer, DEVICE(HALF(5 * MS)))

static void *answerer(void *arg)
{
    for (int i = 0; i < 30; i++) {
        sem_wait(&ping);
        answer();
        sem_post(&pong);
    }
    return arg;
}

static void dialogue(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, answerer, NULL);
    for (int i = 0; i < 30; i++) {
        DEVICE(1 * MS);
        sem_post(&ping);
        sem_wait(&pong);
    }
    pthread_join(thread, NULL);
}

/* Six threads, two connections. */
static sem_t connections;

DO(query, DEVICE(HALF(6 * MS)))

static void *client(void *arg)
{
    for (int i = 0; i < 10; i++) {
        sem_wait(&connections);
        query();
        sem_post(&connections);
        DEVICE(500);
    }
    return arg;
}

static void limited(void)
{
    sem_init(&connections, 0, 2);
    run_threads(6, client);
}

/* The same; there may be three of them. */
static void *patient_client(void *arg)
{
    for (int i = 0; i < 10; i++) {
        sem_wait(&connections);
        DEVICE(6 * MS);
        sem_post(&connections);
        DEVICE(500);
    }
    return arg;
}

static void slots(void)
{
    sem_init(&connections, 0, fixed ? 3 : 2);
    run_threads(6, patient_client);
}

/* A semaphore that is a lock; not one that is passed from hand to hand. */
static sem_t store_locks[4];

static void *keeper(void *arg)
{
    sem_t *lock = &store_locks[fixed ? (intptr_t)arg : 0];
    for (int i = 0; i < 20; i++) {
        DEVICE(2 * MS);
        sem_wait(lock);
        DEVICE(3 * MS);
        sem_post(lock);
    }
    return NULL;
}

static void binary(void)
{
    for (int i = 0; i < 4; i++)
        sem_init(&store_locks[i], 0, 1);
    run_threads(4, keeper);
}

/* With a counter instead. */
static pthread_mutex_t ticket_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ticket_given_back = PTHREAD_COND_INITIALIZER;
static int tickets;

static void take_ticket(void)
{
    pthread_mutex_lock(&ticket_lock);
    while (!tickets)
        pthread_cond_wait(&ticket_given_back, &ticket_lock);
    tickets--;
    pthread_mutex_unlock(&ticket_lock);
}

static void give_ticket_back(void)
{
    pthread_mutex_lock(&ticket_lock);
    tickets++;
    pthread_cond_signal(&ticket_given_back);
    pthread_mutex_unlock(&ticket_lock);
}

static void *visitor(void *arg)
{
    for (int i = 0; i < 12; i++) {
        take_ticket();
        DEVICE(5 * MS);
        give_ticket_back();
        DEVICE(1 * MS);
    }
    return arg;
}

static void counter(void)
{
    tickets = fixed ? 4 : 3;
    run_threads(8, visitor);
}

/* Three answers are needed, and one of them comes late. */
static sem_t asked[3], answered;

static void look_up(int who)
{
    if (who == 1)
        DEVICE(HALF(8 * MS));
    else
        DEVICE(2 * MS);
}

static void *helper(void *arg)
{
    for (int i = 0; i < 25; i++) {
        sem_wait(&asked[(intptr_t)arg]);
        look_up((int)(intptr_t)arg);
        sem_post(&answered);
    }
    return NULL;
}

static void gather(void)
{
    pthread_t thread[3];
    for (intptr_t i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, helper, (void *)i);
    for (int round = 0; round < 25; round++) {
        for (int i = 0; i < 3; i++)
            sem_post(&asked[i]);
        for (int i = 0; i < 3; i++)
            sem_wait(&answered);
        DEVICE(500);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

/* Output waits for more output, which comes only when the first is sent. */
static pthread_mutex_t batch_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t batch_full = PTHREAD_COND_INITIALIZER;
static sem_t batched, sent;

static void linger(void)
{
    struct timespec until = after(CLOCK_REALTIME, HALF(10 * MS) * 1000ul);
    pthread_mutex_lock(&batch_lock);
    while (pthread_cond_timedwait(&batch_full, &batch_lock, &until) == 0)
        ;
    pthread_mutex_unlock(&batch_lock);
}

static void *sender(void *arg)
{
    for (int i = 0; i < 25; i++) {
        sem_wait(&batched);
        linger();
        DEVICE(1 * MS);
        sem_post(&sent);
    }
    return arg;
}

static void batches(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sender, NULL);
    for (int i = 0; i < 25; i++) {
        sem_post(&batched);
        sem_wait(&sent);
    }
    pthread_join(thread, NULL);
}

/* Beginnings and ends ----------------------------------------------------------------------------
 */

/* One of the threads has more to do. */
static void *part(void *arg)
{
    for (int i = 0; i < 10; i++)
        DEVICE(3 * MS);
    return arg;
}

static void *large_part(void *arg)
{
    for (int i = 0; i < 10; i++)
        DEVICE(HALF(20 * MS));
    return arg;
}

static void straggler(void)
{
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, i == 2 ? large_part : part, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

/* Rounds, each as long as the slowest takes. Half of its share gives more than equal shares. */
static pthread_barrier_t round_end;

DO(slow_share, DEVICE(HALF(12 * MS)))
DO(fast_share, DEVICE(5 * MS))

static void *rounds_thread(void *arg)
{
    for (int i = 0; i < 17; i++) {
        if (arg)
            fast_share();
        else
            slow_share();
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

static void rounds(void)
{
    pthread_barrier_init(&round_end, NULL, 4);
    run_threads(4, rounds_thread);
}

/* A thread for each task, and the next one only when it is done. */
static void *task(void *arg)
{
    DEVICE(HALF(6 * MS));
    return arg;
}

static void one_by_one(void)
{
    for (int i = 0; i < 30; i++)
        run_threads(1, task);
}

/* Everybody waits for what one has to set up. */
static pthread_once_t once = PTHREAD_ONCE_INIT;

DO(set_up, DEVICE(HALF(150 * MS)))

static void *needs_set_up(void *arg)
{
    pthread_once(&once, set_up);
    for (int i = 0; i < 10; i++)
        DEVICE(3 * MS);
    return arg;
}

DO(setup, run_threads(5, needs_set_up))

/* The main thread sleeps though all is done. */
static void *done_soon(void *arg)
{
    for (int i = 0; i < 10; i++)
        DEVICE(2 * MS);
    return arg;
}

DO(settle, DEVICE(HALF(200 * MS)))

static void settling(void)
{
    pthread_t thread[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&thread[i], NULL, done_soon, NULL);
    settle();
    for (int i = 0; i < 6; i++)
        pthread_join(thread[i], NULL);
}

/* A waits for B, B for C. */
static sem_t b_done, c_done;

DO(slow_source, DEVICE(HALF(8 * MS)))

static void *chain_c(void *arg)
{
    for (int i = 0; i < 20; i++) {
        slow_source();
        sem_post(&c_done);
    }
    return arg;
}

static void *chain_b(void *arg)
{
    for (int i = 0; i < 20; i++) {
        sem_wait(&c_done);
        DEVICE(1 * MS);
        sem_post(&b_done);
    }
    return arg;
}

static void chain(void)
{
    pthread_t thread[2];
    pthread_create(&thread[0], NULL, chain_b, NULL);
    pthread_create(&thread[1], NULL, chain_c, NULL);
    for (int i = 0; i < 20; i++) {
        sem_wait(&b_done);
        DEVICE(500);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

/* CPUs -------------------------------------------------------------------------------------------
 */

/* The part that only the main thread does. */
static void prepare(void)
{
    for (int i = 0; i < 40; i++) {
        COMPUTE(HALF(5 * MS));
        usleep(1);
    }
}

static void *short_part(void *arg)
{
    DEVICE(20 * MS);
    return arg;
}

static void serial(void)
{
    prepare();
    run_threads(4, short_part);
}

/* A file is read block by block, ahead of who needs it. */
static struct queue blocks = QUEUE(4);

DO(read_block, DEVICE(HALF(5 * MS)))

static void *read_ahead(void *arg)
{
    for (int i = 0; i < 50; i++) {
        read_block();
        put(&blocks, i);
    }
    put(&blocks, -1);
    return arg;
}

static void ahead(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, read_ahead, NULL);
    while (take(&blocks) >= 0)
        COMPUTE(1 * MS);
    pthread_join(thread, NULL);
}

/* Nothing is wrong: all is done at the same time, and nobody waits long. */
static void *healthy_thread(void *arg)
{
    for (int i = 0; i < 30; i++) {
        DEVICE(5 * MS);
        write_log();
    }
    return arg;
}

DO(healthy, run_threads(4, healthy_thread))

/* Threads that compute with the same lock held. */
static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;

static void *adder(void *arg)
{
    for (int i = 0; i < 60; i++) {
        pthread_mutex_lock(&busy_lock);
        COMPUTE(2 * MS);
        pthread_mutex_unlock(&busy_lock);
        DEVICE(1 * MS);
    }
    return arg;
}

DO(convoy, run_threads(4, adder))

/* The main thread asks every now and then whether the others are done. */
static volatile bool finished;

static void *long_part(void *arg)
{
    DEVICE(900 * MS);
    finished = true;
    return arg;
}

static void polling(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, long_part, NULL);
    while (!finished)
        DEVICE(2 * MS);
    pthread_join(thread, NULL);
}

/* All that is waited for is waited for in one function: who calls it says more. */
static void reach(long us)
{
    DEVICE(us);
}

DO(read_header, reach(1 * MS))
DO(read_body, reach(2 * MS))
DO(write_answer, reach(3 * MS))

static void *connection(void *arg)
{
    for (int i = 0; i < 30; i++) {
        read_header();
        read_body();
        write_answer();
    }
    return arg;
}

DO(wrapped, run_threads(2, connection))

/* Threads that answer another process, until the main one gets a signal. */
enum { SERVERS = 3, REQUESTS = 30 };
static int wire[SERVERS][2];

static void ask(void)
{
    char answer[SERVERS];
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < SERVERS; k++)
            send(wire[k][0], answer, 1, 0);
        for (int k = 0; k < SERVERS; k++)
            recv(wire[k][0], answer, 1, 0);
        usleep(1 * MS);
    }
}

DO(handle_request, DEVICE(3 * MS))

static void *serving_thread(void *arg)
{
    char request;
    while (recv(wire[(intptr_t)arg][1], &request, 1, 0) == 1) {
        handle_request();
        send(wire[(intptr_t)arg][1], &request, 1, 0);
    }
    return NULL;
}

static void server(void)
{
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < SERVERS; i++)
        socketpair(AF_UNIX, SOCK_STREAM, 0, wire[i]);
    if (fork() == 0) {
        ask();
        kill(getppid(), SIGUSR1);
        _exit(0);
    }
    pthread_t thread;
    for (intptr_t i = 0; i < SERVERS; i++)
        pthread_create(&thread, NULL, serving_thread, (void *)i);
    sigwait(&set, &number);
}

/* A thread of its own keeps statistics, and is joined when it has been told to stop. */
static pthread_mutex_t ticking_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ticking_over = PTHREAD_COND_INITIALIZER;
static bool ticking;

static void *ticker(void *arg)
{
    pthread_mutex_lock(&ticking_lock);
    while (ticking) {
        struct timespec until = after(CLOCK_REALTIME, 6 * MS * 1000ul);
        pthread_cond_timedwait(&ticking_over, &ticking_lock, &until);
        pthread_mutex_unlock(&ticking_lock);
        DEVICE(1 * MS);
        pthread_mutex_lock(&ticking_lock);
    }
    pthread_mutex_unlock(&ticking_lock);
    return arg;
}

DO(load_page, DEVICE(HALF(6 * MS)))

static void ticks(void)
{
    pthread_t thread;
    ticking = true;
    pthread_create(&thread, NULL, ticker, NULL);
    for (int i = 0; i < 30; i++) {
        load_page();
        DEVICE(3 * MS);
    }
    pthread_mutex_lock(&ticking_lock);
    ticking = false;
    pthread_cond_signal(&ticking_over);
    pthread_mutex_unlock(&ticking_lock);
    pthread_join(thread, NULL);
}

/* Two parts at a time: the shorter one, which nobody waits for, is nearly as long. */
DO(scan_left, DEVICE(HALF(16 * MS)))

static void *left_part(void *arg)
{
    scan_left();
    return arg;
}

static void *right_part(void *arg)
{
    DEVICE(13 * MS);
    return arg;
}

static void beside(void)
{
    for (int i = 0; i < 12; i++) {
        pthread_t left, right;
        pthread_create(&left, NULL, left_part, NULL);
        pthread_create(&right, NULL, right_part, NULL);
        pthread_join(left, NULL);
        pthread_join(right, NULL);
    }
}

/* Connections of a pool are put back, and all waiters are woken: it is no work that is put there.
 */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pool_filled = PTHREAD_COND_INITIALIZER;
static int connections_free = 2;

static void get_connection(void)
{
    pthread_mutex_lock(&pool_lock);
    while (!connections_free)
        pthread_cond_wait(&pool_filled, &pool_lock);
    connections_free--;
    pthread_mutex_unlock(&pool_lock);
}

static void put_connection(void)
{
    pthread_mutex_lock(&pool_lock);
    connections_free++;
    pthread_cond_broadcast(&pool_filled);
    pthread_mutex_unlock(&pool_lock);
}

static void *pool_client(void *arg)
{
    for (int i = 0; i < 15; i++) {
        get_connection();
        DEVICE(4 * MS);
        put_connection();
        DEVICE(3 * MS);
    }
    return arg;
}

DO(pooled, run_threads(6, pool_client))

/* One of many pieces of work is a long one. */
static struct queue pieces = QUEUE(64);

DO(do_piece, DEVICE(3 * MS))
DO(rebuild_index, DEVICE(HALF(70 * MS)))

static void *piece_worker(void *arg)
{
    for (int item; (item = take(&pieces)) >= 0;) {
        if (item == 30)
            rebuild_index();
        else
            do_piece();
    }
    return arg;
}

static void rare(void)
{
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, piece_worker, NULL);
    DEVICE(1 * MS);
    for (int i = 0; i < 48; i++)
        put(&pieces, i);
    for (int i = 0; i < 3; i++)
        put(&pieces, -1);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

/* Threads of one process that talk through descriptors: who lets whom go on is no event. */
enum { QUESTIONS = 30, DECODERS = 2, CLIENTS = 3 };

static void tell(int fd)
{
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one)
        abort();
}

static bool hear(int fd)
{
    uint64_t one;
    return read(fd, &one, sizeof one) == sizeof one;
}

static int question, reply;

DO(compute_answer, DEVICE(HALF(4 * MS)))

static void *oracle(void *arg)
{
    for (int i = 0; i < QUESTIONS && hear(question); i++) {
        compute_answer();
        tell(reply);
    }
    return arg;
}

static void eventfds(void)
{
    pthread_t thread;
    question = eventfd(0, 0);
    reply = eventfd(0, 0);
    pthread_create(&thread, NULL, oracle, NULL);
    for (int i = 0; i < QUESTIONS; i++) {
        tell(question);
        hear(reply);
        DEVICE(1 * MS);
    }
    pthread_join(thread, NULL);
}

static int frames[2], pictures[2];

DO(decode, DEVICE(HALF(4 * MS)))

static void *decoder(void *arg)
{
    while (hear(frames[0])) {
        decode();
        tell(pictures[1]);
    }
    return arg;
}

static void pipes(void)
{
    pthread_t thread[DECODERS];
    if (pipe(frames) || pipe(pictures))
        abort();
    for (int i = 0; i < DECODERS; i++)
        pthread_create(&thread[i], NULL, decoder, NULL);
    for (int i = 0; i < QUESTIONS; i++) {
        for (int k = 0; k < 2 * DECODERS; k++)
            tell(frames[1]);
        for (int k = 0; k < 2 * DECODERS; k++)
            hear(pictures[0]);
        DEVICE(1 * MS);
    }
    close(frames[1]);
    for (int i = 0; i < DECODERS; i++)
        pthread_join(thread[i], NULL);
}

static int line[CLIENTS][2];

DO(look_up_key, DEVICE(HALF(2 * MS)))

static void *key_server(void *arg)
{
    struct pollfd lines[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        lines[i] = (struct pollfd){.fd = line[i][0], .events = POLLIN};
    for (int left = CLIENTS * QUESTIONS; left;) {
        poll(lines, CLIENTS, -1);
        for (int i = 0; i < CLIENTS; i++) {
            if (!lines[i].revents || !hear(line[i][0]))
                continue;
            look_up_key();
            tell(line[i][0]);
            left--;
        }
    }
    return arg;
}

static void *key_client(void *arg)
{
    for (int i = 0; i < QUESTIONS; i++) {
        tell(line[(intptr_t)arg][1]);
        hear(line[(intptr_t)arg][1]);
        DEVICE(1 * MS);
    }
    return arg;
}

static void sockets(void)
{
    pthread_t server;
    for (int i = 0; i < CLIENTS; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, line[i]))
            abort();
    }
    pthread_create(&server, NULL, key_server, NULL);
    run_threads(CLIENTS, key_client);
    pthread_join(server, NULL);
}

DO(append_record, DEVICE(HALF(3 * MS)))

/* A file lock is had by who opened the file: each thread does that itself. */
static void *spooler(void *arg)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    for (int i = 0; i < 15; i++) {
        flock(fd, LOCK_EX);
        append_record();
        flock(fd, LOCK_UN);
        DEVICE(1 * MS);
    }
    close(fd);
    return arg;
}

DO(flocks, run_threads(4, spooler))

/* What a timer ends is nobody's, though there is a thread that does something all the time. */
static volatile bool timed_over;

static void *restless(void *arg)
{
    while (!timed_over)
        DEVICE(700);
    return arg;
}

static void next_tick(int timer)
{
    hear(timer);
}

static void timed(void)
{
    pthread_t thread;
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec period = {{0, 5000000}, {0, 5000000}};
    pthread_create(&thread, NULL, restless, NULL);
    timerfd_settime(timer, 0, &period, NULL);
    for (int i = 0; i < QUESTIONS; i++)
        next_tick(timer);
    timed_over = true;
    pthread_join(thread, NULL);
    close(timer);
}

/* A helper waits for commands through a pipe; none comes but the one to stop, at the end. */
static int commands[2];

DO(parse_file, DEVICE(HALF(6 * MS)))

static void *attendant(void *arg)
{
    struct pollfd command = {.fd = commands[0], .events = POLLIN};
    poll(&command, 1, -1);
    return arg;
}

/* Another process commands the helper, long after main has come to wait for that. */
static void commanded(void)
{
    pthread_t thread;
    if (pipe(commands) != 0)
        return;
    if (fork() == 0) {
        usleep(200 * MS);
        _exit(write(commands[1], "x", 1) != 1);
    }
    pthread_create(&thread, NULL, attendant, NULL);
    parse_file();
    pthread_join(thread, NULL);
}

static void attended(void)
{
    pthread_t thread;
    char stop = 0;
    if (pipe(commands) != 0)
        return;
    pthread_create(&thread, NULL, attendant, NULL);
    for (int i = 0; i < 20; i++) {
        parse_file();
        DEVICE(3 * MS);
    }
    if (write(commands[1], &stop, 1) == 1)
        pthread_join(thread, NULL);
}

static const struct scenario {
    const char *name;
    void (*run)(void);
    const char *first; /* the expected first finding */
    bool misleads;     /* the longest wait is not it */
} others[] = {{"healthy", healthy, NULL, false},    {"convoy", convoy, NULL, false},
              {"polling", polling, NULL, false},    {"server", server, NULL, false},
              {"wrapped", wrapped, NULL, false},    {"binary", binary, NULL, false},
              {"full", full, NULL, false},          {"slots", slots, NULL, false},
              {"counter", counter, NULL, false},    {"ticks", ticks, NULL, false},
              {"beside", beside, NULL, false},      {"paced", paced, NULL, false},
              {"answers", answers, NULL, false},    {"futex", futex, NULL, false},
              {"eventfds", eventfds, NULL, false},  {"pipes", pipes, NULL, false},
              {"sockets", sockets, NULL, false},    {"flocks", flocks, NULL, false},
              {"timed", timed, NULL, false},        {"rare", rare, NULL, false},
              {"pooled", pooled, NULL, false},      {"attended", attended, NULL, false},
              {"commanded", commanded, NULL, false}},
  scenarios[] = {
      {"journal", journal, "journal_lock", true},
      {"nested", nested, "inner_lock", true},
      {"rotation", rotation, "rotate_log", true},
      {"readers", readers, "map_lock", true},
      {"idle", idle, "load_item", true},
      {"pool", pool, "pool_worker", true},
      {"stages", stages, "transform", true},
      {"turns", turns, "compress", true},
      {"dialogue", dialogue, "answer", true},
      {"limited", limited, "query", true},
      {"straggler", straggler, "large_part", true},
      {"rounds", rounds, "slow_share", true},
      {"one_by_one", one_by_one, "task", true},
      {"setup", setup, "set_up", true},
      {"settling", settling, "settle", false},
      {"chain", chain, "slow_source", true},
      {"serial", serial, "prepare", true},
      {"gather", gather, "look_up", true},
      {"batches", batches, "linger", true},
      {"ahead", ahead, "read_block", true},
};

int main(int argc, char **argv)
{
    enum { N = sizeof scenarios / sizeof *scenarios };
    for (int i = 0; argc < 2 && i < N; i++)
        printf("%s %s %d\n", scenarios[i].name, scenarios[i].first, scenarios[i].misleads);
    if (argc < 2)
        return 0;
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    void (*run)(void) = NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        run = strcmp(argv[1], others[i].name) == 0 ? others[i].run : run;
    for (int i = 0; i < N; i++)
        run = strcmp(argv[1], scenarios[i].name) == 0 ? scenarios[i].run : run;
    if (!run)
        return 2;
    uint64_t begin = now_ns();
    run();
    printf("%llu\n", (unsigned long long)(now_ns() - begin));
    return 0;
}
