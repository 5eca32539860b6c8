/* See births.h. */
#include "births.h"

#include "cpus.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/futex.h"
#include "encoder/base/sort.h"

#include <errno.h>
#include <string.h>

/*
 * Rings of all CPUs together, and of one. They do not grow: an event that goes to another ring
 * waits for a grace period of RCU, up to half a second, in which nobody reads the old one.
 */
enum { BIRTHS_CPUS = 16, RINGS_BYTES = 8 << 20, RING_MOST = 4 << 20, RING_LEAST = 16 << 10 };
enum { EVENTS_MOST = 256 }; /* descriptors: of a thousand that a process may have */

static struct {
    struct gt_perf
        ring[BIRTHS_CPUS];  /* a CPU's; its event is our own thread's, and records nothing */
    uint32_t cpus;          /* 0: there are none */
    int event[EVENTS_MOST]; /* of threads, for each CPU one after the other */
    uint32_t events;
    bool refused;
    bool gap; /* records are missing before the next one */
    /* What was read, and perhaps not told yet; in what order. */
    struct gt_vector records, order;
    size_t n;
} births;

bool gt_births_are_on(void)
{
    return births.cpus;
}

/* Rings -------------------------------------------------------------------------------------- */

/* Of all CPUs that the machine has, or none: a thread may be moved to any of them. */
static int open_rings(void)
{
    uint32_t cpus = gt_cpus_count(), own = (uint32_t)gt_syscall(SYS_gettid);
    int error = cpus > BIRTHS_CPUS ? -E2BIG : 0;
    size_t most = RING_MOST;
    while (most * cpus > RINGS_BYTES)
        most /= 2;
    for (; !error && births.cpus < cpus; births.cpus += !error) {
        struct gt_perf_wanted nothing = {.on_cpu = true, .cpu = births.cpus};
        error = gt_perf_open(&births.ring[births.cpus], own, &nothing, most, RING_LEAST);
    }
    return error;
}

static void close_events(uint32_t from)
{
    while (births.events > from)
        gt_syscall(SYS_close, births.event[--births.events]);
}

static int open_events(uint32_t tid)
{
    uint32_t before = births.events;
    int error = before + births.cpus > EVENTS_MOST ? -EMFILE : 0;
    for (uint32_t i = 0; i < births.cpus && !error; i++) {
        struct gt_perf_wanted wanted = {.switches = true, .made = true, .on_cpu = true, .cpu = i};
        int fd = gt_perf_open_event(tid, &wanted);
        error = fd < 0 ? fd : gt_perf_fill(fd, &births.ring[i]);
        if (fd >= 0)
            births.event[births.events++] = fd;
    }
    if (error)
        close_events(before);
    return error;
}

void gt_births_of(uint32_t tid)
{
    bool first = !births.cpus;
    if (births.refused)
        return;
    int error = first ? open_rings() : 0;
    error = error ? error : open_events(tid);
    if (error && first) {
        gt_births_close();
        births.refused = error != -ESRCH;
    }
}

void gt_births_close(void)
{
    close_events(0);
    while (births.cpus)
        gt_perf_close(&births.ring[--births.cpus]);
    gt_vector_empty(&births.records);
    gt_vector_empty(&births.order);
    memset(&births, 0, sizeof births);
}

void gt_births_after_fork(void)
{
    memset(&births, 0, sizeof births);
}

/* Reading ------------------------------------------------------------------------------------ */

static struct gt_perf_switch *records(void)
{
    return births.records.at;
}

static void keep(void *unused, const struct gt_perf_switch *s)
{
    (void)unused;
    if (!s->tid) /* its last moments: nothing of it follows */
        return;
    if (!gt_vector_reserve(&births.records, (births.n + 1) * sizeof *s)) {
        births.gap = true;
        return;
    }
    records()[births.n] = *s;
    records()[births.n++].gap |= births.gap;
    births.gap = false;
}

static void keep_no_sample(void *unused, const struct gt_perf_sample *sample)
{
    (void)unused;
    (void)sample;
}

/* The next record says so: see struct gt_perf_switch. */
static void keep_no_count(void *unused, uint64_t lost)
{
    (void)unused;
    (void)lost;
}

static size_t read_ring(struct gt_perf *ring)
{
    static const struct gt_perf_reader reader = {keep, keep_no_sample, keep_no_count};
    return gt_perf_read(ring, &reader, NULL);
}

static double read_rings(void)
{
    double fullest = 0;
    for (uint32_t i = 0; i < births.cpus; i++) {
        double full = (double)read_ring(&births.ring[i]) / (double)births.ring[i].bytes;
        fullest = full > fullest ? full : fullest;
    }
    return fullest;
}

/* false: there is no memory for that. */
static bool sort(void)
{
    if (!gt_vector_reserve(&births.order, births.n * sizeof(struct gt_pair)))
        return false;
    struct gt_pair *order = births.order.at;
    for (size_t i = 0; i < births.n; i++)
        order[i] = (struct gt_pair){records()[i].ns, i};
    return gt_sort(order, births.n);
}

/* Those up to then; the later ones stay. */
static void tell_until(uint64_t ns, gt_births_fn *fn)
{
    const struct gt_pair *order = births.order.at;
    size_t told = gt_count_up_to(order, births.n, sizeof *order, sizeof order->key, ns);
    for (size_t i = 0; i < told; i++)
        fn(&records()[order[i].value]);
    size_t left = 0;
    for (size_t i = 0; i < births.n; i++) {
        if (records()[i].ns > ns)
            records()[left++] = records()[i];
    }
    births.n = left;
}

/*
 * A thread goes from CPU to CPU. What another ring has of before may be missed where rings are read
 * one after the other, but not of before the first one was.
 */
double gt_births_read(gt_births_fn *fn)
{
    struct timespec now;
    if (!births.cpus)
        return 0;
    gt_clock_read(gt_perf_clock(), &now);
    double fullest = read_rings();
    if (!births.n)
        return fullest;
    if (sort()) {
        tell_until((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, fn);
    } else {
        births.n = 0;
        births.gap = true;
    }
    return fullest;
}
