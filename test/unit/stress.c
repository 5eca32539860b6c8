/*
 * Writers, registry and drain side under load: threads that come and go, block each other and wake
 * each other, while generations change hundreds of times a second. The resulting file must be read
 * without complaint by the real reader, and, built with TSan (`make tsan`), no data race be
 * found. Usage: stress [milliseconds [format file [restart]]], where the file is left for somebody
 * else to read; restart: recording stops and starts again all the time, and the file is what was
 * recorded last.
 */
#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"
#include "preload/registry/park.h"

#include "check.h"

#include <pthread.h>
#include <string.h>

enum { ROUNDS = 100 };
enum { SLOTS = 8, LIVES = 200, SHARE = (64 << 10) + sizeof(struct gt_era) };

struct worker {
    struct gt_writer w;
    struct gt_parking parking;
    _Atomic uint32_t inside; /* has something of the tables: what stands for the guard of hooks */
    pthread_t thread;
    unsigned seed;
};

static struct worker worker[SLOTS];
static _Atomic uint32_t words[3]; /* what they wait for */
static _Atomic uint64_t last_g;
static _Atomic bool stop;
static _Atomic uint32_t renewals;
static uint64_t blocks;

static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    static char name[32];
    (void)max;
    snprintf(name, sizeof name, "f%" PRIx64, s->pcs[index]);
    *out = (struct gt_frame){.func = name, .file = "stress.c", .line = index};
    return 1;
}

static bool is_inside(const struct gt_writer *w)
{
    return atomic_load_explicit(&((const struct worker *)w)->inside, memory_order_acquire);
}

static void age(void)
{
}

static void forget(void)
{
    atomic_fetch_add(&renewals, 1);
}

static void enter(struct worker *k)
{
    atomic_store_explicit(&k->inside, 1, memory_order_relaxed);
}

static void leave(struct worker *k)
{
    atomic_store_explicit(&k->inside, 0, memory_order_release);
}

/* One in four is new. */
static struct gt_stack *some_stack(struct worker *k)
{
    static _Atomic uint64_t fresh;
    bool new = rand_r(&k->seed) % 4 == 0;
    uint64_t pcs[3] = {0x10000 + rand_r(&k->seed) % 50, 0x20000,
                       0x30000 + (new ? atomic_fetch_add(&fresh, 1) : 0)};
    return gt_stacks_get(pcs, 3, 1);
}

static void give_name(struct worker *k)
{
    char name[32];
    snprintf(name, sizeof name, "name %d", rand_r(&k->seed));
    struct gt_string *s = gt_strings_intern(name);
    if (s && k->w.g.state == GT_G_RUNNING && gt_writer_pin(&k->w)) {
        gt_ev_go_label(&k->w, s);
        gt_writer_unpin(&k->w);
    }
}

/* Ends waits, some of which go on nevertheless, as if a barger had taken the lock. */
static void wake(struct worker *k, _Atomic uint32_t *word)
{
    bool in_vain = rand_r(&k->seed) % 3 == 0;
    gt_park_wake(&k->w, &(struct gt_wake){.addr = word, .max = 1}, some_stack(k));
    if (in_vain)
        return;
    atomic_fetch_add(word, 1);
    gt_futex_wake(word, 1);
}

/* Until it is woken, or no longer than that: then it times out. */
static void wait_at(struct worker *k, _Atomic uint32_t *word)
{
    const struct gt_wait_for what = {
        .addr = word, .reason = GT_REASON_SYNC, .since = gt_clock_now()};
    uint32_t seen = atomic_load(word);
    if (!gt_park(&k->w, &k->parking, &what, some_stack(k)))
        return;
    leave(k);
    gt_futex_wait(word, seen, rand_r(&k->seed) % 2000000);
    enter(k);
    CHECK(gt_unpark(&k->w, &k->parking, GT_LOCK_PATIENCE_NS));
    __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED);
}

/* A call into the kernel, some long enough to be written, some of them switched in the middle. */
static void call(struct worker *k)
{
    enum gt_reason reason = rand_r(&k->seed) % 2 ? GT_REASON_NONE : GT_REASON_NETWORK;
    bool announced = false, worth = rand_r(&k->seed) % 2;
    uint64_t since = gt_clock_now();
    struct gt_stack *stack = some_stack(k);
    if (gt_writer_pin(&k->w)) {
        announced = gt_call_announce(&k->w, since, reason, stack);
        gt_writer_unpin(&k->w);
    }
    if (!announced)
        return;
    if (rand_r(&k->seed) % 8 == 0)
        sched_yield();
    if (rand_r(&k->seed) % 8 == 0)
        wake(k, &words[rand_r(&k->seed) % 3]); /* a signal handler */
    bool unseen = gt_call_withdraw(&k->w, since);
    if ((unseen && !worth) || !gt_writer_pin(&k->w))
        return;
    if (unseen)
        gt_call_write(&k->w, since, reason, stack);
    gt_ev_go_resume(&k->w, stack);
    gt_writer_unpin(&k->w);
}

static void live(struct worker *k)
{
    k->w.g.id = atomic_fetch_add(&last_g, 1) + 1;
    k->w.m = (uint32_t)gt_syscall(SYS_gettid);
    k->w.last = gt_clock_now();
    enter(k);
    if (gt_writer_pin(&k->w)) {
        gt_ev_thread_appear(&k->w, some_stack(k));
        gt_writer_unpin(&k->w);
    }
    for (int i = 0; i < LIVES && !atomic_load(&stop); i++) {
        _Atomic uint32_t *where = &words[rand_r(&k->seed) % 3];
        int what = rand_r(&k->seed) % 8;
        leave(k);
        if (atomic_load(&gt_era_full))
            gt_era_wait();
        enter(k);
        if (what < 2)
            wait_at(k, where);
        else if (what < 4)
            call(k);
        else if (what < 5)
            give_name(k);
        else
            wake(k, where);
    }
    if (gt_writer_pin(&k->w)) {
        gt_ev_thread_end(&k->w);
        gt_writer_unpin(&k->w);
    }
    leave(k);
}

static void *work(void *arg)
{
    while (!atomic_load(&stop))
        live(arg);
    return NULL;
}

static void *drain(void *arg)
{
    gt_drain_run();
    return arg;
}

/* The real reader's verdict; 77 where there is no Go. */
static int verdict(const char *path)
{
    char command[256];
    if (system("go version >/dev/null 2>&1") != 0)
        return 77;
    snprintf(command, sizeof command, "go tool trace -d=parsed %s >/dev/null", path);
    CHECK(system(command) == 0, "repeat: %s", command);
    unlink(path);
    return 0;
}

/* Not before there is something to look at, however busy the machine. */
static bool over(uint64_t start, uint64_t ms, uint64_t rounds)
{
    bool renews = !gt_v1_global_order(gt_format); /* see renewal.c */
    return gt_clock_monotonic_raw() - start >= ms * 1000000 && rounds >= ROUNDS &&
           (!renews || atomic_load(&renewals) > 0);
}

/* Recordings that begin and end while threads do whatever they do. */
static void restart(uint64_t ms)
{
    uint64_t start = gt_clock_monotonic_raw();
    for (uint64_t i = 0; !over(start, ms, i); i++) {
        CHECK_EQ(gt_drain_command(GT_DRAIN_STOP, NULL), 0);
        CHECK_EQ(gt_drain_command(GT_DRAIN_STOP, NULL), -EALREADY);
        CHECK_EQ(gt_drain_command(GT_DRAIN_START, NULL), 0);
        CHECK_EQ(gt_drain_command(GT_DRAIN_START, NULL), -EALREADY);
        if (i % 2)
            gt_drain_command(GT_DRAIN_SNAPSHOT, NULL);
    }
}

int main(int argc, char **argv)
{
    static char temporary[] = "/tmp/gt-stress-XXXXXX";
    const char *path = argc > 3 ? argv[3] : temporary;
    uint64_t ms = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
    pthread_t drainer;
    if (argc <= 3)
        close(mkstemp(temporary));
    gt_clock_init();
    gt_drain_open(&(struct gt_drain_config){
        .file = {path, gt_format_find(argc > 2 ? argv[2] : GT_FORMAT_DEFAULT)},
        .names = {resolve},
        .renewal = {is_inside, age, forget}});
    bool kept = gt_v1_global_order(gt_format); /* see renewal.c */
    gt_era_set_share(kept ? 0 : SHARE, NULL);
    gt_drain_set_threaded();
    pthread_create(&drainer, NULL, drain, NULL);
    for (unsigned i = 0; i < SLOTS; i++) {
        worker[i].seed = i + 1;
        gt_writer_register(&worker[i].w);
        pthread_create(&worker[i].thread, NULL, work, &worker[i]);
    }
    uint64_t start = gt_clock_monotonic_raw(), flushes = 0;
    bool restarts = argc > 4;
    if (restarts)
        restart(ms);
    else
        for (; !over(start, ms, flushes); flushes++)
            gt_drain_command(GT_DRAIN_SNAPSHOT, NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < SLOTS; i++)
        pthread_join(worker[i].thread, NULL);
    gt_drain_finish();
    pthread_join(drainer, NULL);
    struct gt_recording_summary s = gt_recording_summary();
    printf("%" PRIu64 " events, %" PRIu64 " waits, %u generations, %u renewals, error %d\n",
           s.events, blocks, s.generations, atomic_load(&renewals), s.error);
    CHECK_EQ(s.error, 0);
    CHECK(restarts || s.generations >= flushes);
    CHECK(blocks > 100);
    return argc > 3 ? 0 : verdict(path);
}
