/* See generation.h. */
#include "generation.h"

#include "buffers.h"
#include "clock.h"
#include "output.h"
#include "renewal.h"
#include "samples.h"
#include "switch.h"
#include "v1.h"
#include "v2.h"

#include <string.h>
#include <unistd.h>

static struct {
    const struct gt_drain_config *config;
    struct gt_kept now;     /* gen, and what was known when it began */
    uint64_t events_before; /* written then; kept ones alone are counted */
    struct gt_buf *early;   /* batches of the next one, encoded; see keep_early */
    struct gt_buf *early_last;
} generation;

/* From one to the next ----------------------------------------------------------------------- */

/*
 * Keeps the status batch of a silent writer, encoded, until the old generation is in the file: it
 * must precede whatever that writer itself may queue meanwhile.
 */
static void keep_early(void *unused, struct gt_buf *batch)
{
    (void)unused;
    struct gt_buf *last = generation.early_last;
    if (!last || GT_BUF_ROOM - last->used < GT_V2_BATCH_HEADER_MAX + batch->used) {
        struct gt_buf *fresh = gt_buffers_get(true);
        if (!fresh)
            return;
        if (last)
            last->next = fresh;
        else
            generation.early = fresh;
        generation.early_last = last = fresh;
    }
    uint8_t *p = last->data + last->used;
    p = gt_v2_batch_header(p, batch->gen, batch->m, batch->ts, batch->used);
    memcpy(p, batch->data, batch->used);
    last->used = (uint32_t)(p + batch->used - last->data);
}

static struct gt_buf *take_early(void)
{
    struct gt_buf *early = generation.early;
    generation.early = generation.early_last = NULL;
    return early;
}

static void write_early(void)
{
    struct gt_buf *early = take_early();
    gt_v2_begin(early);
    gt_buffers_put_all(early);
}

static void note_beginning(uint32_t gen)
{
    generation.now = (struct gt_kept){.gen = gen,
                                      .snapshot = gt_clock_snapshot(),
                                      .begin_ns = gt_clock_monotonic_raw(),
                                      .from = atomic_load(&gt_gen.from)};
}

/* Returns what is known of the one that all writers have left: its buffers are queued. */
static struct gt_kept move_on(uint32_t next)
{
    struct gt_kept past = generation.now;
    gt_switch_all(next, keep_early, NULL);
    note_beginning(next);
    past.end_ns = generation.now.begin_ns;
    return past;
}

/* In generation `next` a reader may begin: everybody's state is told in it. */
static void tell_all(uint32_t next)
{
    static uint32_t procs;
    if (!procs)
        procs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    atomic_store(&gt_gen.from, gt_clock_now());
    atomic_store(&gt_gen.procs, procs);
    atomic_store(&gt_gen.first, next);
}

void gt_generation_init(const struct gt_drain_config *config, bool mute)
{
    gt_switch_init();
    generation.config = config;
    generation.events_before = gt_switch_events();
    atomic_store(&gt_gen.mute_since, mute ? 1 : 0);
    atomic_store(&gt_gen.mute, mute ? 1 : 0);
    atomic_store(&gt_gen.first, 1);
    atomic_store(&gt_gen.procs, 0);
    atomic_store(&gt_gen.from, 0);
    note_beginning(1);
}

void gt_generation_open(void)
{
    atomic_store(&gt_gen.current, generation.now.gen);
}

void gt_generation_begin(void)
{
    uint32_t next = generation.now.gen + 1;
    generation.events_before = gt_switch_events();
    tell_all(next);
    gt_samples_forget();
    move_on(next);
    if (!gt_format->v1 && !generation.config->ring_bytes)
        write_early();
}

void gt_generation_renew(void)
{
    uint32_t next = generation.now.gen + 1;
    gt_renewal_before_switch();
    atomic_store(&gt_gen.mute, next);
    move_on(next);
    gt_renewal_after_generation(gt_ring_first_era());
}

void gt_generation_leave(void)
{
    gt_switch_all(0, keep_early, NULL);
}

/* Its end ------------------------------------------------------------------------------------ */

static uint32_t number_of(enum gt_successor successor)
{
    uint32_t next = successor == GT_SUCCESSOR_NONE ? 0 : generation.now.gen + 1;
    if (successor == GT_SUCCESSOR_MUTE) {
        atomic_store(&gt_gen.mute_since, next);
        atomic_store(&gt_gen.mute, next);
    } else if (successor == GT_SUCCESSOR_WRITTEN) {
        gt_renewal_before_switch();
    }
    return next;
}

/* The CPU samples from before that are of this generation. */
static uint64_t samples_until(enum gt_successor successor)
{
    uint64_t until = successor == GT_SUCCESSOR_WRITTEN ? gt_clock_now() : UINT64_MAX;
    gt_samples_collect();
    return until;
}

static void write_queue(uint32_t gen)
{
    struct gt_buf *queue = gt_buffers_take(gen);
    gt_v2_write(queue);
    gt_buffers_put_all(queue);
}

void gt_generation_write_queued(void)
{
    write_queue(generation.now.gen);
}

static void write_v2(uint32_t next, uint64_t until)
{
    struct gt_kept past = move_on(next);
    write_queue(past.gen);
    gt_v2_end(generation.config, past.gen, &past.snapshot, until);
}

/* Nothing of a generation can be written before all of it is known. */
static int write_v1(uint32_t next, uint64_t until)
{
    struct gt_buf *early = take_early();
    struct gt_kept past = move_on(next);
    struct gt_buf *plain = gt_buffers_take(past.gen);
    int error = gt_v1_write(generation.config, past.gen, early, plain, until);
    gt_buffers_put_all(early);
    gt_buffers_put_all(plain);
    return error;
}

int gt_generation_write(enum gt_successor successor)
{
    int error = 0;
    uint64_t until = samples_until(successor);
    uint32_t next = number_of(successor);
    if (gt_format->v1)
        error = write_v1(next, until);
    else
        write_v2(next, until);
    error = error ? error : gt_output_commit();
    if (!gt_format->v1)
        write_early();
    gt_renewal_after_generation(gt_ring_first_era());
    return error;
}

void gt_generation_keep(enum gt_successor successor)
{
    uint64_t until = samples_until(successor);
    uint32_t next = number_of(successor);
    struct gt_buf *early = take_early();
    if (successor == GT_SUCCESSOR_WRITTEN)
        tell_all(next);
    struct gt_kept past = move_on(next);
    uint64_t events = gt_switch_events();
    past.events = events - generation.events_before;
    generation.events_before = events;
    struct gt_buf *plain = gt_buffers_take(past.gen);
    if (!gt_ring_keep(&past, early, plain, until)) {
        gt_ring_clear(); /* what is before a gap is of no use */
        gt_samples_move(until, NULL);
    }
    gt_buffers_put_all(early);
    gt_buffers_put_all(plain);
    gt_renewal_after_generation(gt_ring_first_era());
    gt_ring_trim();
}

int gt_generation_write_kept(const struct gt_kept *k)
{
    if (gt_format->v1)
        return gt_v1_write_kept(generation.config, k);
    gt_v2_write_kept(generation.config, k);
    return 0;
}

void gt_generation_after_fork(void)
{
    atomic_store(&gt_gen.current, 0);
    gt_buffers_put_all(generation.early);
    memset(&generation, 0, sizeof generation);
}
