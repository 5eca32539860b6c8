/* See kernel.h. */
#include "kernel.h"

#include "encoder/cpu/perf.h"

#include "test/unit/check.h"

#include <errno.h>
#include <string.h>

enum { CPUS = 3, TASKS = 4096, RECORDS = 64, JITTER_NS = 400 };

/* A thread, and what was recorded of it and not yet read: by two rings while one follows another.
 */
struct task {
    uint32_t tid, cpu; /* cpu + 1; 0: it has none */
    struct ring {
        bool open, gap;
        struct gt_perf_switch record[RECORDS];
        unsigned n;
    } ring[2];
};

static struct task task[TASKS];
static struct task *on[CPUS];
static uint64_t (*random_below)(uint64_t n);

void kernel_begin(uint64_t (*below)(uint64_t n))
{
    memset(task, 0, sizeof task);
    memset(on, 0, sizeof on);
    random_below = below;
}

static struct task *task_of(uint32_t tid)
{
    for (uint32_t i = tid;; i++) {
        struct task *t = &task[i % TASKS];
        CHECK(i < tid + TASKS, "too many threads");
        if (!t->tid)
            t->tid = tid;
        if (t->tid == tid)
            return t;
    }
}

static void put(struct ring *ring, struct gt_perf_switch s)
{
    if (!ring->open)
        return;
    if (ring->n == RECORDS || random_below(500) == 0) {
        ring->gap = true;
        return;
    }
    s.gap = ring->gap;
    ring->record[ring->n++] = s;
    ring->gap = false;
}

/* Its clock is not quite that of the events; a full ring loses some. */
static void record(struct task *t, uint64_t ns, bool out, bool preempted)
{
    struct gt_perf_switch s = {
        .ns = ns + random_below(JITTER_NS), .cpu = t->cpu - 1, .out = out, .preempted = preempted};
    for (int i = 0; i < 2; i++, s.ns += random_below(2))
        put(&t->ring[i], s);
}

static void leave(struct task *t, bool preempted, uint64_t ns)
{
    record(t, ns, true, preempted);
    on[t->cpu - 1] = NULL;
    t->cpu = 0;
}

void kernel_runs(uint32_t tid, uint64_t ns)
{
    struct task *t = task_of(tid);
    uint32_t cpu = (uint32_t)random_below(CPUS);
    if (t->cpu)
        return;
    if (on[cpu])
        leave(on[cpu], random_below(4) != 0, ns - 2);
    on[cpu] = t;
    t->cpu = cpu + 1;
    record(t, ns - 1, false, false);
}

void kernel_may_switch(uint32_t tid, bool waits, uint64_t ns)
{
    struct task *t = task_of(tid);
    if (t->cpu && random_below(waits ? 2 : 10) == 0)
        leave(t, !waits, ns);
}

bool kernel_may_watch(void)
{
    return true;
}

/* By a thread, so far: anything. It takes no random number, so that seeds keep their schedules. */
static uint64_t used_by(uint32_t tid)
{
    enum { MOST_NS = 20000 };
    static uint64_t asked;
    return (tid * UINT64_C(2654435761) + asked++ * 7919) % MOST_NS;
}

bool kernel_where(uint32_t tid, struct gt_where_now *where)
{
    const struct task *t = task_of(tid);
    bool sleeps = !t->cpu && random_below(2) == 0;
    *where = (struct gt_where_now){
        .sleeps = sleeps, .runs = t->cpu, .cpu = t->cpu ? t->cpu - 1 : 0, .cpu_ns = used_by(tid)};
    return random_below(3) != 0;
}

/* Nothing is known of anybody but what half of those use that end. */
bool kernel_usage(uint32_t tid, unsigned wanted, struct gt_usage *usage)
{
    (void)wanted;
    usage->of[GT_USED_CPU] = used_by(tid);
    usage->known = !tid && usage->of[GT_USED_CPU] % 2 ? GT_KNOWN_CPU : 0;
    return true;
}

/* encoder/cpu/perf.h --------------------------------------------------------------------------- */

clockid_t gt_perf_clock(void)
{
    return CLOCK_MONOTONIC;
}

int gt_perf_open(struct gt_perf *perf, uint32_t tid, const struct gt_perf_wanted *wanted,
                 size_t most, size_t least)
{
    struct task *t = task_of(tid);
    int i = t->ring[0].open;
    (void)least;
    if (wanted->every)
        return -EACCES;
    CHECK(wanted->switches && !wanted->period_ns, "no samples are played");
    CHECK(!t->ring[i].open, "a third ring");
    *perf = (struct gt_perf){.fd = -1};
    if (random_below(20) == 0)
        return -ENFILE;
    t->ring[i] = (struct ring){.open = true};
    *perf = (struct gt_perf){.fd = (int)(t - task) * 2 + i, .bytes = most};
    return 0;
}

static struct ring *ring_of(const struct gt_perf *perf)
{
    return &task[perf->fd / 2].ring[perf->fd % 2];
}

bool gt_perf_has_more(const struct gt_perf *perf)
{
    return ring_of(perf)->n;
}

size_t gt_perf_read(struct gt_perf *perf, const struct gt_perf_reader *reader, void *arg)
{
    struct ring *ring = ring_of(perf);
    unsigned n = ring->n;
    for (unsigned i = 0; i < n; i++)
        reader->note_switch(arg, &ring->record[i]);
    ring->n = 0;
    return random_below(4) ? 0
                           : perf->bytes * n / RECORDS; /* rings grow, and take others' places */
}

uint64_t gt_perf_close(struct gt_perf *perf)
{
    ring_of(perf)->open = false;
    *perf = (struct gt_perf){.fd = -1};
    return 0;
}
