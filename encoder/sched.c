/* See sched.h. */
#include "sched.h"

#include "account.h"
#include "cpus.h"
#include "perf.h"
#include "texts.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/debug.h"
#include "encoder/base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A thread that is watched. */
struct watch {
    struct watch *next;
    struct gt_thread_view thread;
    struct gt_perf perf;
    struct gt_vector memory; /* of absences: those of this generation, and later ones */
    size_t n, used;          /* used: of this generation */
    bool away;               /* the last one is not over */
    bool ended, gone;        /* its thread, in this generation or the next; certainly */
    struct gt_absence rest;  /* what of the last one used is of the next generation; to 0: none */
};

/* Rings of all threads together, at most; and of one, but a page at least. */
enum { RINGS_BYTES = 4 << 20, RING_MOST = 256 << 10, RING_LEAST = 4 << 10 };

enum { ABSENCES_MAX = 1 << 20 }; /* of a thread, in memory */

enum { BUCKETS = 1024 };

static struct {
    bool wanted;
    bool (*may_watch)(void);
    gt_where_fn *where;
} config;

static struct {
    bool refused;
    _Atomic bool forbidden;
    struct watch *bucket[BUCKETS]; /* by thread */
    struct gt_arena arena;
    struct watch *free;
    size_t mapped; /* bytes of all rings */
    _Atomic uint64_t unwatched;
    uint32_t from; /* the first generation that is completed; 0: none */
    uint64_t polled;
    uint64_t gaps;
    /* The records' clock and the trace's at two moments, between which both go evenly. */
    uint64_t ns0, units0;
    double units_per_ns;
} sched;

void gt_sched_init(bool on, bool (*may_watch)(void), gt_where_fn *where)
{
    config.wanted = on && may_watch;
    config.may_watch = may_watch;
    config.where = where;
    if (config.wanted)
        gt_cpus_init((uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

void gt_sched_forbid(void)
{
    atomic_store(&sched.forbidden, true);
}

bool gt_sched_is_on(void)
{
    return sched.from != 0;
}

uint32_t gt_sched_cpus(void)
{
    bool watches = gt_sched_is_on() && !sched.refused && !atomic_load(&sched.forbidden);
    return watches ? gt_cpus_count() : 0;
}

bool gt_sched_covers(uint32_t gen)
{
    return sched.from && gen >= sched.from;
}

uint64_t gt_sched_unwatched(void)
{
    return atomic_load(&sched.unwatched);
}

uint64_t gt_sched_gaps(void)
{
    return sched.gaps;
}

/* Clocks ------------------------------------------------------------------------------------- */

static void compare_clocks(void)
{
    uint64_t ns, units;
    gt_clock_pair(gt_perf_clock(), &units, &ns);
    if (ns > sched.ns0)
        sched.units_per_ns = (double)(units - sched.units0) / (double)(ns - sched.ns0);
}

static uint64_t units_of(uint64_t ns)
{
    double since = (double)(int64_t)(ns - sched.ns0) * sched.units_per_ns;
    return since > 0 ? sched.units0 + (uint64_t)since : sched.units0;
}

/* Records ------------------------------------------------------------------------------------ */

static struct gt_absence *absences(struct watch *w)
{
    return w->memory.at;
}

static void end_absence(struct watch *w, uint64_t ts, uint32_t cpu)
{
    absences(w)[w->n - 1].to = ts;
    absences(w)[w->n - 1].cpu = cpu;
}

static void begin_absence(struct watch *w, uint64_t ts, bool preempted)
{
    if (w->n == ABSENCES_MAX || !gt_vector_reserve(&w->memory, (w->n + 1) * sizeof *absences(w)))
        return;
    absences(w)[w->n++] = (struct gt_absence){ts, GT_ABSENT, preempted, GT_NO_CPU};
    w->away = true;
}

static void note(void *arg, const struct gt_perf_switch *s)
{
    struct watch *w = arg;
    uint64_t ts = units_of(s->ns);
    sched.gaps += s->gap;
    if (s->gap && w->away) { /* when it was back is not known; what is told already has to end */
        w->away = false;
        if (absences(w)[w->n - 1].from)
            w->n--;
        else
            end_absence(w, ts, GT_NO_CPU);
    }
    if (!s->out) {
        if (w->away)
            end_absence(w, ts, s->cpu);
        w->away = false;
        return;
    }
    if (!w->away)
        begin_absence(w, ts, s->preempted);
}

/*
 * When a thread is watched from now on: it has no CPU, or that is known. Nothing is known if there
 * is a record already.
 */
static void note_beginning(struct watch *w)
{
    struct gt_where_now where;
    uint64_t now = gt_clock_now();
    if (!config.where(w->thread.tid, &where) || gt_perf_has_more(&w->perf))
        return;
    begin_absence(w, now, !where.sleeps);
    if (where.runs && w->away) {
        end_absence(w, now, where.cpu);
        w->away = false;
    }
}

/* Threads ------------------------------------------------------------------------------------ */

static void each_watch(void (*fn)(struct watch *w))
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct watch *w = sched.bucket[i], *next; w; w = next) {
            next = w->next;
            fn(w);
        }
    }
}

static struct watch **find(uint32_t tid)
{
    struct watch **link = &sched.bucket[tid % BUCKETS];
    while (*link && (*link)->thread.tid != tid)
        link = &(*link)->next;
    return link;
}

/* The more there are, the smaller: each takes an eighth of what is left. */
static size_t ring_bytes(void)
{
    size_t left = sched.mapped < RINGS_BYTES ? RINGS_BYTES - sched.mapped : 0, bytes = RING_MOST;
    while (bytes > RING_LEAST && bytes > left / 8)
        bytes /= 2;
    return bytes;
}

static void say_refused(int error)
{
    if (!sched.refused && (error == -EACCES || error == -EPERM))
        gt_log("GOTRACE_SCHED: the kernel does not let this user watch threads (%s): "
               "kernel.perf_event_paranoid must be 2 or less, and perf_event_open(2) be allowed; "
               "without it CPU time is only counted",
               strerrordesc_np(-error));
    sched.refused |= error == -EACCES || error == -EPERM;
}

static void read_ring(struct watch *w)
{
    if (w->perf.bytes)
        gt_perf_read(&w->perf, note, w);
}

static void close_ring(struct watch *w)
{
    read_ring(w);
    sched.mapped -= w->perf.bytes;
    gt_perf_close(&w->perf);
}

static void free_watch(struct watch *w)
{
    gt_vector_empty(&w->memory);
    w->next = sched.free;
    sched.free = w;
}

static void end_watch(struct watch *w)
{
    *find(w->thread.tid) = w->next;
    close_ring(w);
    free_watch(w);
}

static struct watch *new_watch(void)
{
    struct watch *w = sched.free;
    if (w)
        sched.free = w->next;
    return w ? w : gt_arena_alloc(&sched.arena, sizeof *w);
}

static bool open_ring(struct watch *w)
{
    bool may = !sched.refused && !atomic_load(&sched.forbidden);
    int error = may ? gt_perf_open(&w->perf, w->thread.tid, ring_bytes()) : -ENOTSUP;
    say_refused(error);
    if (error && may && !sched.refused && error != -ESRCH)
        atomic_fetch_add(&sched.unwatched, 1);
    if (error)
        return false;
    sched.mapped += w->perf.bytes;
    note_beginning(w);
    return true;
}

/*
 * A thread may be another goroutine than before, if a signal handler ran before its beginning. Or
 * it has the number of one that has ended.
 */
static void watch_again(struct watch *w, const struct gt_thread_view *thread)
{
    bool other = gt_account_stream_end(&w->thread) == UINT64_MAX;
    w->thread = *thread;
    if (!other)
        return;
    close_ring(w);
    if (w->away)
        end_absence(w, gt_clock_now(), GT_NO_CPU);
    w->away = w->ended = w->gone = false;
    if (!open_ring(w))
        w->perf = (struct gt_perf){.fd = -1};
}

static void watch(const struct gt_thread_view *thread)
{
    struct watch **link = find(thread->tid), *w = *link;
    if (w) {
        watch_again(w, thread);
        return;
    }
    if (!(w = new_watch()))
        return;
    *w = (struct watch){.thread = *thread};
    if (open_ring(w))
        *link = w;
    else
        free_watch(w);
}

static void read_rings(void)
{
    compare_clocks();
    each_watch(read_ring);
}

void gt_sched_poll(uint64_t now)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!sched.from || now - sched.polled < GT_SCHED_NS / 2)
        return;
    sched.polled = now;
    gt_account_each_new(watch);
    read_rings();
}

int64_t gt_sched_idle_ns(uint64_t now)
{
    uint64_t due = sched.polled + GT_SCHED_NS;
    return !gt_sched_is_on() ? -1 : due > now ? (int64_t)(due - now) : 0;
}

void gt_sched_open(void)
{
    sched.from = 0;
    sched.refused = false;
    sched.gaps = 0;
    sched.unwatched = 0;
    sched.polled = 0;
    gt_merge_reset(&gt_merge_for_sched);
    gt_cpus_reset();
}

void gt_sched_close(void)
{
    sched.from = 0;
    each_watch(end_watch);
    gt_account_forget_seen();
}

void gt_sched_next(uint32_t gen)
{
    GT_ASSERT_DRAIN_SIDE();
    if (sched.from) {
        read_rings();
        return;
    }
    if (!config.wanted || !config.may_watch())
        return;
    sched.from = gen;
    gt_clock_pair(gt_perf_clock(), &sched.units0, &sched.ns0);
    sched.units_per_ns = (double)gt_clock_hz() / 1e9;
    gt_account_each_new(watch);
}

/* A generation's ------------------------------------------------------------------------------ */

/* Of what is known of a thread, what is of the generation that is over for it at `end`. */
static void divide(struct watch *w)
{
    uint64_t end = gt_account_stream_end(&w->thread);
    struct gt_absence *a = absences(w);
    w->gone = w->ended;
    w->ended = end == UINT64_MAX;
    w->rest = (struct gt_absence){0};
    for (w->used = 0; w->used < w->n && a[w->used].from < end;)
        w->used++;
    if (!w->used || (a[w->used - 1].to <= end && a[w->used - 1].to != GT_ABSENT))
        return;
    w->rest = a[w->used - 1];
    w->rest.from = 0;
    a[w->used - 1].to = GT_ABSENT;
}

static void go_on(struct watch *w)
{
    if (w->gone) {
        end_watch(w);
        return;
    }
    if (w->ended) /* its last records, and room for others' rings */
        close_ring(w);
    if (!w->used)
        return;
    struct gt_absence *a = absences(w);
    size_t more = w->n - w->used, kept = w->rest.to ? 1 : 0;
    if (kept)
        a[0] = w->rest;
    memmove(a + kept, a + w->used, more * sizeof *a);
    w->n = more + kept;
    w->used = 0;
}

static const struct gt_absence *absences_of(uint32_t m, size_t *n)
{
    struct watch *w = *find(m);
    *n = w ? w->used : 0;
    return w ? absences(w) : NULL;
}

/* What is still the case when everything is over: for the file's end. */
static const struct gt_absence *absences_at_end(uint32_t m, size_t *n)
{
    static const struct gt_absence away[] = {{0, GT_ABSENT, false, GT_NO_CPU},
                                             {0, GT_ABSENT, true, GT_NO_CPU}};
    struct watch *w = *find(m);
    *n = w && w->n && !absences(w)->from;
    return *n ? &away[absences(w)->preempted] : NULL;
}

/* Encodes the events anew. 0 or -errno. */
static int rewrite(uint32_t gen, struct gt_buf *packed, struct gt_buf *plain, gt_absences_fn *away,
                   struct gt_packed *to)
{
    if (!gt_cpus_begin(gen, gt_merge_streams(packed, plain)))
        return -ENOMEM;
    int error = gt_merge(&gt_merge_for_sched, gen, packed, plain, away, gt_cpus_put);
    bool whole = gt_cpus_end(to);
    return error ? error : whole ? 0 : -ENOMEM;
}

/* What is no events stays. */
static struct gt_buf *take_texts(struct gt_buf *plain)
{
    struct gt_buf *texts = NULL, **link = &texts;
    for (struct gt_buf *next; plain; plain = next) {
        next = plain->next;
        plain->next = NULL;
        if (gt_texts_in(plain)) {
            *link = plain;
            link = &plain->next;
        } else {
            gt_buffers_put(plain);
        }
    }
    return texts;
}

int gt_sched_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain)
{
    GT_ASSERT_DRAIN_SIDE();
    if (!gt_sched_covers(gen))
        return 0;
    struct gt_packed completed = {0};
    each_watch(divide);
    int error = rewrite(gen, *packed, *plain, absences_of, &completed);
    each_watch(go_on);
    if (error) {
        gt_buffers_put_all(completed.first);
        return error;
    }
    gt_buffers_put_all(*packed);
    *packed = completed.first;
    *plain = take_texts(*plain);
    return 0;
}

struct gt_buf *gt_sched_end(uint32_t gen, struct gt_buf *packed)
{
    GT_ASSERT_DRAIN_SIDE();
    struct gt_packed completed = {0};
    if (rewrite(gen, packed, NULL, absences_at_end, &completed) == 0)
        return completed.first;
    gt_buffers_put_all(completed.first);
    return NULL;
}

/* Events are the parent's, and so are the rings. Its descriptors are not here. */
void gt_sched_after_fork(void)
{
    bool forbidden = atomic_load(&sched.forbidden); /* by a filter, which is inherited */
    memset(&sched, 0, sizeof sched);
    atomic_store(&sched.forbidden, forbidden);
    gt_cpus_reset();
}
