/*
 * Random valid schedules through the real encoder, a trace file each: threads that come and go,
 * block, wake each other (also needlessly, also from signal handlers), call into the kernel,
 * collect garbage, lose their CPUs and get others, while generations change anywhere in between and
 * the CPUs' clocks disagree. Of v1 files every other one is cut after some page, as if the process
 * had been killed. A reader of the files must find nothing wrong with them. Usage: schedules FORMAT
 * FIRST_SEED COUNT DIRECTORY
 *
 * One thread plays all of them, with a clock of its own: the same seed gives the same events.
 */
#include "encoder/drain/child.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"

#include "kernel.h"
#include "test/unit/check.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 24, SKEW_NS = 2000, PAGE = 4096 };

enum what { NOBODY, BORN, RUNNING, BLOCKED, YIELDED, CALLING };

struct thread {
    struct gt_writer w;
    enum what what;
    bool woken; /* blocked, and somebody has ended that */
    uint64_t since, skew;
    enum gt_reason reason;
    struct gt_stack *stack;
};

static struct thread thread[THREADS_MAX];
static unsigned threads;
static bool switches; /* GOTRACE_SCHED */
static uint64_t seed, last_g, now_ns = 1000000000, skew;

/* The clock: CLOCK_MONOTONIC is asked for because the fuzzer takes away the hardware's. */
static int clock_of_schedule(clockid_t clock, struct timespec *ts)
{
    (void)clock;
    uint64_t t = now_ns + skew;
    ts->tv_sec = (time_t)(t / 1000000000u);
    ts->tv_nsec = (long)(t % 1000000000u);
    return 0;
}

static uint64_t number(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = seed >> 33;
    return below ? x % below : 0;
}

static bool one_in(uint64_t n)
{
    return number(n) == 0;
}

static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    static char name[2000];
    uint64_t pc = s->pcs[index];
    int n = pc % 5 == 0 && max > 1 ? 2 : 1; /* some are inlined */
    memset(name, 'x', sizeof name - 1);
    snprintf(name, pc % 797 == 0 ? sizeof name : 20, "f%" PRIx64, pc);
    if (pc % 797 == 0)
        name[strlen(name)] = 'x'; /* too long */
    for (int i = 0; i < n; i++)
        out[i] =
            (struct gt_frame){.func = i ? "inlined" : name,
                              .file = pc % 3 ? "file.c" : "",
                              .line = (uint32_t)pc % 1000,
                              .pc = i == n - 1 && pc % 7 == 0 ? pc + (1ull << 50) : 0,
                              .module = i == n - 1 && pc % 2 ? "a note that no event uses" : NULL};
    return n;
}

static struct gt_stack *some_stack(void)
{
    uint64_t pcs[GT_FRAMES_MAX];
    uint32_t n = one_in(300) ? 1 + (uint32_t)number(GT_FRAMES_MAX) : 1 + (uint32_t)number(6);
    if (one_in(20))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        pcs[i] = 0x7f0000000000 + number(one_in(50) ? 5000 : 60) * 16 + i;
    return gt_stacks_get(pcs, n, 1 + (uint32_t)one_in(100));
}

/* As t, at its CPU's time. */
static bool enter(struct thread *t)
{
    now_ns += 2 + (one_in(30) ? number(1000000) : number(300));
    if (one_in(10))
        t->skew = number(SKEW_NS);
    skew = t->skew;
    if (switches)
        kernel_runs(t->w.m, now_ns);
    return gt_writer_pin(&t->w);
}

static void leave(struct thread *t)
{
    gt_writer_unpin(&t->w);
    if (one_in(60))
        gt_drain_command(GT_DRAIN_SNAPSHOT, NULL);
}

static void set(struct thread *t, enum what what)
{
    t->what = what;
    t->woken = false;
    leave(t);
    if (switches)
        kernel_may_switch(t->w.m, what != RUNNING, now_ns + 1);
}

static struct thread *somebody(enum what what)
{
    unsigned first = (unsigned)number(threads);
    for (unsigned i = 0; i < threads; i++) {
        struct thread *t = &thread[(first + i) % threads];
        if (t->what == what)
            return t;
    }
    return NULL;
}

static struct thread *anybody_in_the_trace(void)
{
    struct thread *t = &thread[number(threads)];
    return t->what == NOBODY || t->what == BORN ? NULL : t;
}

/* Deeds --------------------------------------------------------------------------------------- */

static void be_born(void)
{
    struct thread *t = somebody(NOBODY), *parent = somebody(RUNNING);
    if (!t || (!parent && one_in(2)))
        return;
    t->w.g.id = ++last_g;
    if (parent && !one_in(4)) {
        if (!enter(parent))
            return;
        gt_ev_go_create(&parent->w, &t->w.g, some_stack(), some_stack());
        t->what = BORN;
        leave(parent);
        return;
    }
    t->w.last = 0;
    t->w.m = 100 + (uint32_t)(one_in(2) ? number(4) + 1000 * last_g : last_g);
    if (!enter(t))
        return;
    gt_ev_thread_appear(&t->w, some_stack());
    set(t, RUNNING);
}

static void begin(void)
{
    struct thread *t = somebody(BORN);
    if (!t || (one_in(20) && threads > 3))
        return; /* some never run */
    t->w.last = 0;
    t->w.m = 100 + (uint32_t)last_g;
    for (unsigned i = 0; i < threads; i++) {
        if (&thread[i] != t && thread[i].w.m == t->w.m)
            t->w.m = 100000000 + (uint32_t)t->w.g.id;
    }
    if (!enter(t))
        return;
    gt_ev_thread_start(&t->w);
    set(t, RUNNING);
}

static void end(void)
{
    struct thread *t = somebody(one_in(10) ? BLOCKED : RUNNING);
    if (!t || !enter(t))
        return;
    gt_ev_thread_end(&t->w);
    set(t, NOBODY);
}

static void block(void)
{
    struct thread *t = somebody(RUNNING);
    if (!t)
        return;
    uint64_t since = now_ns - gt_clock.base + 1;
    if (!enter(t))
        return;
    enum gt_reason reason = 1 + (enum gt_reason)number(GT_REASON_YIELDS); /* the last one */
    if (reason == GT_REASON_YIELD) {
        gt_ev_go_stop(&t->w, since, reason, some_stack());
        set(t, YIELDED);
    } else {
        gt_ev_go_block(&t->w, since, reason, some_stack());
        set(t, BLOCKED);
    }
}

static void wake(void)
{
    struct thread *target = somebody(BLOCKED), *t = anybody_in_the_trace();
    if (!target || !t || t == target || !enter(t))
        return;
    bool done = target->woken ? gt_ev_go_unblock_again(&t->w, &target->w.g, some_stack())
                              : gt_ev_go_unblock(&t->w, &target->w.g, some_stack());
    CHECK(done, "a pin cannot be old here");
    target->woken = true;
    leave(t);
}

static void resume(void)
{
    struct thread *t = somebody(one_in(5) ? YIELDED : BLOCKED);
    if (!t || !enter(t))
        return;
    if (one_in(4)) /* its time was over before */
        t->w.woken = gt_clock_now() - number(3000);
    gt_ev_go_resume(&t->w, some_stack());
    set(t, RUNNING);
}

static void call(void)
{
    struct thread *t = somebody(RUNNING);
    if (!t || !enter(t))
        return;
    t->reason = one_in(3) ? GT_REASON_NETWORK : GT_REASON_NONE;
    t->stack = some_stack();
    t->since = gt_clock_now();
    CHECK(gt_call_announce(&t->w, t->since, t->reason, t->stack), "running");
    set(t, CALLING);
}

static void call_end(void)
{
    struct thread *t = somebody(CALLING);
    if (!t)
        return;
    t->what = RUNNING;
    bool unseen = gt_call_withdraw(&t->w, t->since);
    if ((unseen && one_in(2)) || !enter(t))
        return;
    if (unseen)
        gt_call_write(&t->w, t->since, t->reason, t->stack);
    gt_ev_go_resume(&t->w, t->stack);
    set(t, RUNNING);
}

static void label(void)
{
    static const char *const names[] = {"worker", "main", "network", "io"};
    struct thread *t = somebody(RUNNING);
    if (!t || !enter(t))
        return;
    gt_ev_go_label(&t->w, gt_strings_intern(names[number(4)]));
    leave(t);
}

static void count_heap(void)
{
    struct thread *t = anybody_in_the_trace();
    if (!t || !enter(t))
        return;
    for (uint64_t n = number(40); n--;)
        gt_ev_heap_alloc(&t->w, 0, number(1 << 20));
    leave(t);
}

static void collect(void)
{
    struct thread *t = somebody(RUNNING);
    struct gt_collection gc = {.begin = now_ns - gt_clock.base + 1, .pauses = 2};
    if (!t || one_in(2) || !enter(t))
        return;
    gc.pause[0].begin = gc.begin + number(3);
    gc.end = gc.pause[0].end = gc.pause[1].begin = gc.pause[1].end = gc.begin + 4;
    gt_ev_gc(&t->w, &gc);
    leave(t);
}

/* The thread's time is over, and later its wait was. */
static void lose_cpu(void)
{
    struct thread *t = somebody(RUNNING);
    now_ns += number(2000);
    if (t && switches)
        kernel_may_switch(t->w.m, one_in(3), now_ns);
}

static void (*const deeds[])(void) = {be_born, begin,    end,    block,      block,   wake,
                                      wake,    wake,     resume, resume,     resume,  call,
                                      call,    call_end, label,  count_heap, collect, lose_cpu};

/* Traces -------------------------------------------------------------------------------------- */

static void main_thread(void)
{
    struct thread *t = &thread[0];
    t->w.g.id = last_g = 1;
    t->w.m = 99;
    if (!enter(t))
        return;
    gt_ev_thread_running(&t->w);
    gt_ev_procs_change(&t->w, 1 + number(64), NULL);
    set(t, RUNNING);
}

/* Keeps some of a file's pages. */
static void cut(const char *path)
{
    struct stat st;
    CHECK(stat(path, &st) == 0 && st.st_size % PAGE == 0, "%s: no whole pages", path);
    CHECK(truncate(path, PAGE * (1 + (off_t)number((uint64_t)st.st_size / PAGE))) == 0, "%s", path);
}

static void play(const struct gt_format *format, const char *path)
{
    memset(thread, 0, sizeof thread);
    gt_clock.base = now_ns;
    gt_clock.hz = 20000000 + number(980000001); /* readers multiply with a fraction */
    gt_clock.rough_hz = gt_clock.hz;
    switches = one_in(2);
    kernel_begin(number);
    gt_drain_open(&(struct gt_drain_config){
        .file = {path, format},
        .cpu = {.sched = switches},
        .names = {resolve},
        .cpus = {.usage = kernel_usage, .may_watch = kernel_may_watch, .where = kernel_where}});
    threads = 1 + (unsigned)number(THREADS_MAX);
    for (unsigned i = 0; i < threads; i++)
        gt_writer_register(&thread[i].w);
    main_thread();
    uint64_t n = one_in(40) ? number(60000) : one_in(10) ? number(10) : number(600);
    while (n--)
        deeds[number(sizeof deeds / sizeof *deeds)]();
    CHECK(gt_drain_finish(), "recording");
    struct gt_recording_summary s = gt_recording_summary();
    CHECK(s.error == 0, "%s: error %d", path, s.error);
    gt_encoder_after_fork(); /* as good as new */
    if (format->v1 && one_in(2))
        cut(path);
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    CHECK(argc == 5, "usage: schedules FORMAT FIRST_SEED COUNT DIRECTORY");
    const struct gt_format *format = gt_format_find(argv[1]);
    CHECK(format, "no such format: %s", argv[1]);
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    gt_clock_init();
    gt_clock_read = clock_of_schedule;
    gt_clock = (struct gt_clock){.hardware = false};
    for (uint64_t i = first; i < first + count; i++) {
        seed = i * 0x9e3779b97f4a7c15u;
        number(0);
        snprintf(path, sizeof path, "%s/%s-%" PRIu64 ".trace", argv[4], argv[1], i);
        play(format, path);
    }
    return 0;
}
