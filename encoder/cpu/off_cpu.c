/* See off_cpu.h. */
#include "off_cpu.h"

#include "copies.h"

#include "encoder/format/format.h"

#include <errno.h>

enum { RING_BYTES = 256 << 10 };

static bool refused; /* the kernel has refused */

static void begin(struct gt_off_cpu *d, uint32_t tid, uint32_t every)
{
    struct gt_perf_wanted wanted = {.every = every,
                                    .stack_bytes = GT_COPY_LEAST - GT_PERF_SAMPLE_BYTES};
    if (refused || !gt_copies_are_walked() || !gt_copies_have_room(RING_BYTES))
        return;
    int error = gt_perf_open(&d->perf, tid, &wanted, RING_BYTES, RING_BYTES);
    refused = error == -EACCES || error == -EPERM;
    gt_copies_count((int64_t)d->perf.bytes);
}

static void end(struct gt_off_cpu *d)
{
    gt_copies_count(-(int64_t)d->perf.bytes);
    gt_perf_close(&d->perf);
}

void gt_off_cpu_want(struct gt_off_cpu *d, uint32_t tid, uint32_t every)
{
    if (every && !d->perf.bytes)
        begin(d, tid, every);
    else if (!every && d->perf.bytes)
        end(d);
}

struct reading {
    gt_off_cpu_fn *fn;
    void *arg;
};

static void note_sample(void *arg, const struct gt_perf_sample *sample)
{
    const struct reading *r = arg;
    uint64_t pcs[GT_FRAMES_MAX];
    uint32_t epoch;
    bool cut; /* only the inner frames are known then */
    uint32_t n = gt_copies_walk(sample, pcs, &epoch, &cut);
    struct gt_stack *stack = n ? gt_stacks_get(pcs, n, epoch) : NULL;
    if (stack)
        r->fn(r->arg, sample->ns, stack);
}

static void note_lost(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
}

void gt_off_cpu_read(struct gt_off_cpu *d, gt_off_cpu_fn *fn, void *arg)
{
    static const struct gt_perf_reader reader = {.note_sample = note_sample,
                                                 .note_lost = note_lost};
    if (d->perf.bytes)
        gt_perf_read(&d->perf, &reader, &(struct reading){fn, arg});
}

void gt_off_cpu_open(void)
{
    refused = false;
}
