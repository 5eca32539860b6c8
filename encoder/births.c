/* See births.h. */
#include "births.h"

#include "cpus.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/futex.h"
#include "encoder/base/sort.h"

#include <errno.h>
#include <string.h>

enum { BIRTHS_CPUS = 16, RING_MOST = 256 << 10, RING_LEAST = 16 << 10 };
enum { EVENTS_MOST = 256 }; /* descriptors: of a thousand that a process may have */

static struct {
    struct gt_perf ring[BIRTHS_CPUS]; /* a CPU's, with the event of the first thread */
    uint32_t cpus;                    /* 0: there are none */
    int event[EVENTS_MOST];           /* those of further threads, which fill the same rings */
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

size_t gt_births_bytes(void)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < births.cpus; i++)
        bytes += births.ring[i].bytes;
    return bytes;
}

/* Rings -------------------------------------------------------------------------------------- */

static struct gt_perf_wanted wanted_on(uint32_t cpu)
{
    return (struct gt_perf_wanted){.switches = true, .made = true, .cpu = cpu};
}

/* All CPUs that the machine has, or none: a thread may be moved to any of them. */
static void open_rings(uint32_t tid)
{
    uint32_t cpus = gt_cpus_count();
    int error = cpus > BIRTHS_CPUS ? -E2BIG : 0;
    while (!error && births.cpus < cpus) {
        struct gt_perf_wanted wanted = wanted_on(births.cpus);
        error = gt_perf_open(&births.ring[births.cpus], tid, &wanted, RING_MOST, RING_LEAST);
        births.cpus += !error;
    }
    if (error)
        gt_births_close();
    births.refused = error && error != -ESRCH;
}

static void close_events(uint32_t from)
{
    while (births.events > from)
        gt_syscall(SYS_close, births.event[--births.events]);
}

static void open_events(uint32_t tid)
{
    uint32_t before = births.events;
    bool failed = before + births.cpus > EVENTS_MOST;
    for (uint32_t i = 0; i < births.cpus && !failed; i++) {
        struct gt_perf_wanted wanted = wanted_on(i);
        int fd = gt_perf_open_into(&births.ring[i], tid, &wanted);
        failed = fd < 0;
        if (!failed)
            births.event[births.events++] = fd;
    }
    if (failed)
        close_events(before);
}

void gt_births_of(uint32_t tid)
{
    if (births.cpus)
        open_events(tid);
    else if (!births.refused)
        open_rings(tid);
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

static double read_rings(void)
{
    static const struct gt_perf_reader reader = {keep, keep_no_sample, keep_no_count};
    double fullest = 0;
    for (uint32_t i = 0; i < births.cpus; i++) {
        struct gt_perf *ring = &births.ring[i];
        double full = (double)gt_perf_read(ring, &reader, NULL) / (double)ring->bytes;
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
