/* See watch.h. */
#include "watch.h"

#include "copies.h"
#include "samples.h"

#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/base/sparse.h"
#include "encoder/thread/buffers.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/*
 * Bytes of all rings without samples together, at most; and of one ring when it is opened. A ring
 * grows until it has room for LATE_NS of its thread's switches: the drain thread may wait that
 * long for a CPU where many threads want one.
 */
enum { RINGS_BYTES = 8 << 20, RING_MOST = 256 << 10, RING_LEAST = 4 << 10 };
enum { RING_GROWN = 1 << 20, LATE_NS = 200000000 };

/* A ring with samples (copies.h) has room for LONG_MS; or for SHORT_MS, rather than none. */
enum { LONG_MS = 200, SHORT_MS = 60 };

enum { BUCKETS = 1024 };

static struct gt_watch_config config;

static struct gt_watch *buckets[BUCKETS] GT_SPARSE; /* by thread */

static struct {
    bool on;
    uint32_t gen;                  /* under way */
    uint32_t hz;                   /* of samples; 0: none */
    bool refused, samples_refused; /* the kernel has refused */
    struct gt_arena arena;
    struct gt_watch *free;
    size_t rings;              /* how many are open */
    size_t mapped;             /* bytes of the rings without samples */
    uint64_t polled, interval; /* the last poll; the next is due `interval` later */
    uint64_t read;             /* when the rings were read; 0: no thread was ever watched */
    uint64_t elapsed;          /* from the read before until then */
    double fullest;            /* how full the fullest ring was then */
    bool grown;                /* there is no memory for larger rings */
    /* The records' clock and the trace's at one moment, and the rate between them since. */
    uint64_t ns0, units0;
    double units_per_ns;
} watch;

static _Atomic bool forbidden;
static _Atomic uint64_t unwatched;

void gt_watch_init(const struct gt_watch_config *c)
{
    config = *c;
    watch.hz = c->hz;
}

void gt_watch_forbid(void)
{
    atomic_store(&forbidden, true);
}

bool gt_watch_is_allowed(void)
{
    return !watch.refused && !atomic_load(&forbidden);
}

uint64_t gt_watch_unwatched(void)
{
    return atomic_load(&unwatched);
}

/* Clocks ------------------------------------------------------------------------------------- */

static void compare_clocks(void)
{
    uint64_t ns, units;
    gt_clock_pair(gt_perf_clock(), &units, &ns);
    if (ns > watch.ns0)
        watch.units_per_ns = (double)(units - watch.units0) / (double)(ns - watch.ns0);
}

uint64_t gt_watch_time(uint64_t ns)
{
    double since = (double)(int64_t)(ns - watch.ns0) * watch.units_per_ns;
    return since > 0 ? watch.units0 + (uint64_t)since : watch.units0;
}

/* Rings -------------------------------------------------------------------------------------- */

/* The more rings there are, the smaller is the next: each takes an eighth of what is left. */
static size_t ring_bytes(void)
{
    size_t most = watch.mapped < RINGS_BYTES ? (RINGS_BYTES - watch.mapped) / 8 : 0;
    size_t bytes = RING_MOST;
    while (bytes > RING_LEAST && bytes > most)
        bytes /= 2;
    return bytes;
}

/* The bytes of a ring for the samples of `ms`; each record takes `copied` bytes. */
static size_t ring_for(size_t copied, unsigned ms)
{
    size_t needed = copied * (2 + (size_t)watch.hz * ms / 1000), bytes = RING_LEAST;
    while (bytes < needed)
        bytes *= 2;
    return bytes + (config.switches.note ? bytes : 0); /* room for switches, too */
}

static int try_sampled(struct gt_watch *w, size_t copied, size_t bytes)
{
    struct gt_perf_wanted wanted = {.switches = config.switches.note,
                                    .period_ns = 1000000000 / watch.hz,
                                    .stack_bytes = (uint32_t)copied - GT_PERF_SAMPLE_BYTES};
    int error = gt_perf_open(&w->perf, w->thread.tid, &wanted, bytes, bytes);
    watch.samples_refused |= error == -EACCES || error == -EPERM;
    return error;
}

static int open_sampled(struct gt_watch *w)
{
    int error = -ENOMEM;
    for (size_t copied = GT_COPY_MOST; copied >= GT_COPY_LEAST && error == -ENOMEM; copied /= 2) {
        size_t bytes = ring_for(copied, LONG_MS);
        if (bytes <= gt_copies_share())
            error = try_sampled(w, copied, bytes);
    }
    size_t bytes = ring_for(GT_COPY_LEAST, SHORT_MS);
    if (error == -ENOMEM && gt_copies_have_room(bytes))
        error = try_sampled(w, GT_COPY_LEAST, bytes);
    return error;
}

static void say_refused(int error)
{
    gt_log_note("GOTRACE_SCHED: the kernel does not let this user watch threads (%s): "
                "kernel.perf_event_paranoid must be 2 or less, and perf_event_open(2) be allowed; "
                "without it CPU time is only counted",
                gt_libc_error(-error));
}

static int open_unsampled(struct gt_watch *w)
{
    struct gt_perf_wanted wanted = {.switches = true};
    int error = gt_perf_open(&w->perf, w->thread.tid, &wanted, ring_bytes(), RING_LEAST);
    if (error == -EACCES || error == -EPERM) {
        say_refused(error);
        watch.refused = true;
    } else if (error && error != -ESRCH) {
        atomic_fetch_add(&unwatched, 1);
    }
    return error;
}

static bool may_sample(void)
{
    return watch.hz && gt_copies_are_walked() && !watch.samples_refused && !atomic_load(&forbidden);
}

static bool may_note(void)
{
    return config.switches.note && gt_watch_is_allowed();
}

static void count(const struct gt_watch *w, int sign)
{
    int64_t bytes = sign * (int64_t)w->perf.bytes;
    watch.rings += (size_t)sign;
    if (w->sampled)
        gt_copies_count(bytes);
    else
        watch.mapped += (size_t)bytes;
}

static bool open_ring(struct gt_watch *w)
{
    int error = may_sample() && !w->cut ? open_sampled(w) : -ENOTSUP;
    w->sampled = !error;
    if (error && error != -ESRCH && may_note())
        error = open_unsampled(w);
    if (error) {
        w->perf = (struct gt_perf){.fd = -1};
        return false;
    }
    count(w, 1);
    w->owes = w->sampled && config.by_copy(w->thread.writer, w->thread.g, true);
    if (config.switches.begin)
        config.switches.begin(w);
    return true;
}

/* Closes the ring; signals sample the thread from here on. */
static void drop_ring(struct gt_watch *w)
{
    if (!w->perf.bytes)
        return;
    if (w->sampled)
        config.by_copy(w->thread.writer, w->thread.g, false);
    count(w, -1);
    uint64_t lost = gt_perf_close(&w->perf);
    if (w->sampled)
        gt_samples_lose(lost);
    w->sampled = false;
}

/* Records ------------------------------------------------------------------------------------ */

/*
 * While a larger ring replaces a ring, both record a switch, perhaps a moment apart. The second
 * one is skipped.
 */
static void note_switch(void *arg, const struct gt_perf_switch *s)
{
    struct gt_watch *w = arg;
    if (s->ns <= w->told)
        return;
    w->last = s->ns;
    config.switches.note(w, s, gt_watch_time(s->ns));
}

static void note_sample(void *arg, const struct gt_perf_sample *sample)
{
    struct gt_watch *w = arg;
    uint64_t pcs[GT_FRAMES_MAX];
    struct gt_sample s = {.ts = gt_watch_time(sample->ns),
                          .g = w->thread.g,
                          .m = w->thread.tid,
                          .p = w->thread.p,
                          .cpu = sample->cpu,
                          .times = 1 + w->owes};
    bool cut;
    w->owes = false;
    s.n = gt_copies_walk(sample, pcs, &s.epoch, &cut);
    w->cut |= cut;
    gt_samples_take(&s, pcs);
}

/*
 * Counts lost samples, but only in a ring without switches. In a ring with both most lost records
 * are switches, which the next switch reports as a gap.
 */
static void note_lost(void *arg, uint64_t n)
{
    const struct gt_watch *w = arg;
    if (w->sampled && !config.switches.note)
        gt_samples_lose(n);
}

/* Returns how full the ring was: 1 is full. */
static double empty_ring(struct gt_watch *w)
{
    static const struct gt_perf_reader reader = {note_switch, note_sample, note_lost};
    if (!w->perf.bytes)
        return 0;
    double full = (double)gt_perf_read(&w->perf, &reader, w) / (double)w->perf.bytes;
    watch.fullest = full > watch.fullest ? full : watch.fullest;
    return full;
}

static void close_ring(struct gt_watch *w)
{
    empty_ring(w);
    drop_ring(w);
}

/* Closes the ring and opens another. Between the two nothing is known of the thread. */
static void renew_ring(struct gt_watch *w)
{
    close_ring(w);
    if (config.switches.end)
        config.switches.end(w);
    open_ring(w);
}

/* Replaces the ring by one twice as large, which records already when the old one is emptied. */
static void grow_ring(struct gt_watch *w)
{
    struct gt_perf_wanted wanted = {.switches = true};
    struct gt_perf larger;
    size_t bytes = 2 * w->perf.bytes;
    int error = gt_perf_open(&larger, w->thread.tid, &wanted, bytes, bytes);
    watch.grown = error == -ENOMEM;
    if (error)
        return;
    empty_ring(w);
    count(w, -1);
    gt_perf_close(&w->perf);
    w->perf = larger;
    w->told = w->last;
    count(w, 1);
}

static bool is_small(const struct gt_watch *w, double full)
{
    size_t bytes = w->perf.bytes;
    bool may_grow = bytes && bytes < RING_GROWN && watch.mapped + bytes <= RINGS_BYTES;
    return may_grow && !w->sampled && !watch.grown && full * LATE_NS > (double)watch.elapsed;
}

/* Reads a thread's ring. If the thread has ended, closes the ring, which makes room for others. */
static void read_ring(struct gt_watch *w)
{
    bool over = gt_account_is_over(&w->thread);
    double full = empty_ring(w);
    if (config.switches.noted)
        config.switches.noted(w);
    if (over)
        drop_ring(w);
    else if (w->cut && w->sampled)
        renew_ring(w);
    else if (is_small(w, full))
        grow_ring(w);
}

/* Threads ------------------------------------------------------------------------------------ */

void gt_watch_each(void (*fn)(struct gt_watch *w))
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct gt_watch *w = buckets[i], *next; w; w = next) {
            next = w->next;
            fn(w);
        }
    }
}

static struct gt_watch **find(uint32_t tid)
{
    struct gt_watch **link = &buckets[tid % BUCKETS];
    while (*link && (*link)->thread.tid != tid)
        link = &(*link)->next;
    return link;
}

struct gt_watch *gt_watch_of(uint32_t tid)
{
    return *find(tid);
}

static void free_watch(struct gt_watch *w)
{
    if (config.switches.forget)
        config.switches.forget(w);
    w->next = watch.free;
    watch.free = w;
}

static void end_watch(struct gt_watch *w)
{
    *find(w->thread.tid) = w->next;
    close_ring(w);
    free_watch(w);
}

static struct gt_watch *new_watch(void)
{
    struct gt_watch *w = watch.free;
    if (w)
        watch.free = w->next;
    return w ? w : gt_arena_alloc(&watch.arena, sizeof *w);
}

/*
 * Watches a thread whose tid is watched already. The thread may be another goroutine than before,
 * if a signal handler ran before its beginning. Or its tid was that of a thread that has ended.
 */
static void watch_again(struct gt_watch *w, const struct gt_thread_view *thread)
{
    close_ring(w);
    w->thread = *thread;
    w->ended = w->gone = w->cut = false;
    renew_ring(w);
}

static void begin_watch(const struct gt_thread_view *thread)
{
    struct gt_watch **link = find(thread->tid), *w = *link;
    if (w) {
        watch_again(w, thread);
        return;
    }
    if (!(w = new_watch()))
        return;
    *w = (struct gt_watch){.thread = *thread};
    if (open_ring(w))
        *link = w;
    else
        free_watch(w);
}

static void note_end(struct gt_watch *w)
{
    w->end = gt_account_stream_end(&w->thread);
    w->gone = w->ended;
    w->ended = w->end == UINT64_MAX;
}

void gt_watch_note_ends(void)
{
    gt_watch_each(note_end);
}

static void let_go(struct gt_watch *w)
{
    if (w->gone)
        end_watch(w);
}

void gt_watch_let_go(void)
{
    gt_watch_each(let_go);
}

/* Reading ------------------------------------------------------------------------------------ */

/*
 * Sets the interval so that the fullest ring is a quarter full at the next read: the drain thread
 * may be late.
 */
static void pace(void)
{
    enum { LEAST_NS = 2000000 };
    double ns = watch.fullest > 0 ? (double)watch.elapsed / (4 * watch.fullest) : GT_WATCH_NS;
    watch.interval = ns > GT_WATCH_NS ? GT_WATCH_NS : ns < LEAST_NS ? LEAST_NS : (uint64_t)ns;
}

void gt_watch_read(void)
{
    GT_ASSERT_DRAIN_SIDE();
    uint32_t request = gt_copies_request();
    if (!watch.on)
        return;
    uint64_t now = gt_clock_monotonic_raw();
    watch.elapsed = now - watch.read;
    watch.read = now;
    watch.fullest = 0;
    compare_clocks();
    gt_watch_each(read_ring);
    pace();
    gt_copies_serve(request);
}

/* Whether there is a ring to read, or a thread that may be watched. */
static bool is_of_use(void)
{
    return watch.on && (watch.rings || may_sample() || may_note());
}

void gt_watch_poll(uint64_t now)
{
    GT_ASSERT_DRAIN_SIDE();
    bool soon = now - watch.polled < watch.interval / 2 && !gt_copies_are_awaited();
    if (!is_of_use() || soon)
        return;
    watch.polled = now;
    gt_account_each_new(begin_watch);
    gt_watch_read();
}

int64_t gt_watch_idle_ns(uint64_t now)
{
    uint64_t due = watch.polled + watch.interval;
    return !is_of_use() ? -1 : due > now ? (int64_t)(due - now) : 0;
}

/* A recording -------------------------------------------------------------------------------- */

bool gt_watch_is_on(void)
{
    return watch.on;
}

static bool is_wanted(void)
{
    return (config.switches.note || watch.hz) && config.may_watch && config.may_watch();
}

static void begin(void)
{
    if (!is_wanted())
        return;
    watch.on = true;
    watch.refused = watch.samples_refused = false;
    watch.polled = 0;
    watch.interval = GT_WATCH_NS;
    watch.grown = false;
    watch.read = gt_clock_monotonic_raw();
    atomic_store(&unwatched, 0);
    gt_clock_pair(gt_perf_clock(), &watch.units0, &watch.ns0);
    watch.units_per_ns = (double)gt_clock_hz() / 1e9;
    gt_account_each_new(begin_watch);
}

uint32_t gt_watch_generation(void)
{
    return watch.gen;
}

void gt_watch_next(uint32_t gen)
{
    GT_ASSERT_DRAIN_SIDE();
    watch.gen = gen;
    if (!watch.on) {
        begin();
        return;
    }
    gt_account_each_new(begin_watch); /* they were born in the generation to be completed */
    gt_watch_read();
}

static void end(void)
{
    gt_watch_read();
    gt_watch_each(end_watch);
    gt_account_forget_seen();
    watch.on = false;
}

void gt_watch_end(void)
{
    GT_ASSERT_DRAIN_SIDE();
    end();
    if (watch.hz != config.hz)
        config.by_timers(config.hz);
    watch.hz = config.hz;
}

/* Meets all threads anew: closes their rings and opens others. */
static void meet_again(void)
{
    gt_account_forget_seen();
    gt_account_each_new(begin_watch);
}

void gt_watch_sample(uint32_t hz)
{
    GT_ASSERT_DRAIN_SIDE();
    config.by_timers(0);
    watch.hz = hz;
    if (!watch.on)
        begin();
    else if (is_wanted())
        meet_again();
    else
        end();
    config.by_timers(hz); /* threads with a ring have no running timer */
}

void gt_watch_after_fork(void)
{
    if (watch.read)
        memset(buckets, 0, sizeof buckets);
    memset(&watch, 0, sizeof watch); /* not `forbidden`: filters are inherited */
    unwatched = 0;
}
