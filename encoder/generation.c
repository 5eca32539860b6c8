/* See generation.h. */
#include "generation.h"

#include "account.h"
#include "buffers.h"
#include "cpus.h"
#include "frames.h"
#include "live.h"
#include "output.h"
#include "renewal.h"
#include "samples.h"
#include "sched.h"
#include "switch.h"
#include "v2.h"
#include "watch.h"

#include "encoder/base/clock.h"
#include "encoder/v1/v1.h"

#include <string.h>
#include <unistd.h>

static struct {
    struct gt_kept now;     /* gen, and what was known when it began */
    uint64_t events_before; /* written then; kept ones alone are counted */
    struct gt_packed early; /* batches of it, not in the file yet; see keep_early */

    /* The one that is over and not in the file yet. */
    struct gt_kept past;
    struct gt_buf *past_early;
    uint64_t until; /* the CPU samples from before that are its */
    enum gt_successor successor;
} generation;

uint64_t gt_generation_events(void)
{
    return gt_switch_events() + (uint64_t)gt_cpus_added();
}

static void name_of(const struct gt_kept *k)
{
    gt_frames_of_time(k->begin_ns, k->end_ns);
}

/* From one to the next ----------------------------------------------------------------------- */

/*
 * Keeps the status batch of a silent writer, encoded, until the old generation is in the file: it
 * must precede whatever that writer itself may queue meanwhile.
 */
static void keep_early(struct gt_buf *batch)
{
    gt_v2_pack(&generation.early, batch->gen, batch->m, batch->ts, batch->data, batch->used);
}

static struct gt_buf *take_early(void)
{
    struct gt_buf *early = generation.early.first;
    generation.early = (struct gt_packed){0};
    return early;
}

static void note_beginning(uint32_t gen)
{
    generation.now = (struct gt_kept){.gen = gen,
                                      .snapshot = gt_clock_snapshot(),
                                      .begin_ns = gt_clock_monotonic_raw(),
                                      .from = atomic_load(&gt_gen.from)};
    gt_live_begin(gen, &generation.now.snapshot);
}

/* To generation `next`, or to none, with everybody's state in `told`; 0: it is not told. */
static struct gt_kept move_on_telling(uint32_t next, uint32_t told)
{
    struct gt_kept past = generation.now;
    gt_switch_all(next, told, keep_early);
    note_beginning(past.gen + 1);
    past.end_ns = generation.now.begin_ns;
    return past;
}

/*
 * Returns what is known of the one that all writers have left: its buffers are queued. What the
 * next one begins with is known either way: it may be all of it.
 */
static struct gt_kept move_on(uint32_t next)
{
    return move_on_telling(next, generation.now.gen + 1);
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

uint32_t gt_generation_past(void)
{
    return generation.now.gen;
}

void gt_generation_init(bool mute)
{
    gt_switch_init();
    uint32_t first = generation.now.gen + 1;
    generation.events_before = gt_generation_events();
    atomic_store(&gt_gen.mute_since, mute ? first : 0);
    atomic_store(&gt_gen.mute, mute ? first : 0);
    atomic_store(&gt_gen.first, first);
    atomic_store(&gt_gen.procs, 0);
    atomic_store(&gt_gen.from, 0);
    note_beginning(first);
}

void gt_generation_open(void)
{
    atomic_store(&gt_gen.current, generation.now.gen);
}

void gt_generation_begin(void)
{
    GT_ASSERT_DRAIN_SIDE();
    uint32_t next = generation.now.gen + 1;
    generation.events_before = gt_generation_events();
    tell_all(next);
    gt_samples_forget();
    move_on(next);
}

void gt_generation_renew(void)
{
    GT_ASSERT_DRAIN_SIDE();
    uint32_t next = generation.now.gen + 1;
    gt_renewal_before_switch();
    atomic_store(&gt_gen.mute, next);
    move_on_telling(next, 0);
    gt_renewal_after_generation(gt_ring_first_era());
}

void gt_generation_stop(void)
{
    GT_ASSERT_DRAIN_SIDE();
    gt_switch_all(0, 0, keep_early);
}

/* Its end ------------------------------------------------------------------------------------ */

static bool is_last(enum gt_successor successor)
{
    return successor == GT_SUCCESSOR_MUTE || successor == GT_SUCCESSOR_NONE;
}

static uint32_t number_of(enum gt_successor successor)
{
    uint32_t next = successor == GT_SUCCESSOR_NONE ? 0 : generation.now.gen + 1;
    if (is_last(successor))
        gt_account_expect_last();
    if (successor == GT_SUCCESSOR_MUTE) {
        atomic_store(&gt_gen.mute_since, next);
        atomic_store(&gt_gen.mute, next);
    } else if (next) {
        gt_renewal_before_switch();
    }
    if (successor == GT_SUCCESSOR_ELSEWHERE)
        tell_all(next);
    return next;
}

static enum gt_account_look look_of(enum gt_successor successor)
{
    return is_last(successor)                    ? GT_ACCOUNT_LAST
           : successor == GT_SUCCESSOR_ELSEWHERE ? GT_ACCOUNT_ALL
                                                 : GT_ACCOUNT_TURNS;
}

/* The CPU samples from before that are of this generation. */
static uint64_t samples_until(enum gt_successor successor)
{
    uint64_t until = is_last(successor) ? UINT64_MAX : gt_clock_now();
    gt_watch_read();
    gt_samples_collect();
    return until;
}

/* All threads are in it. */
static void watch_next(void)
{
    gt_watch_next(generation.now.gen);
    gt_sched_next(generation.now.gen);
}

/* Of one that is over: by what the kernel tells. 0 or -errno. */
static int complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain)
{
    gt_watch_note_ends();
    int error = gt_sched_complete(gen, packed, plain);
    gt_watch_let_go();
    return error;
}

static void write_queue(uint32_t gen)
{
    struct gt_buf *queue = gt_buffers_take(gen);
    gt_v2_write(queue);
    gt_buffers_put_all(queue);
}

void gt_generation_write_queued(void)
{
    GT_ASSERT_DRAIN_SIDE();
    write_queue(generation.now.gen);
}

void gt_generation_close(enum gt_successor successor)
{
    GT_ASSERT_DRAIN_SIDE();
    generation.successor = successor;
    generation.until = samples_until(successor);
    uint32_t next = number_of(successor);
    generation.past_early = take_early();
    generation.past = move_on(next);
    watch_next();
    name_of(&generation.past);
    gt_account_collect(generation.past.gen, look_of(successor));
}

/* That may take long, and rings are filled meanwhile. */
static void look_up(void *unused, struct gt_stack *s)
{
    (void)unused;
    struct gt_named_frame *frames[GT_FRAMES_MAX];
    gt_frames_of(s, frames);
    gt_watch_poll(gt_clock_monotonic_raw());
}

void gt_generation_look_up(void)
{
    GT_ASSERT_DRAIN_SIDE();
    gt_samples_use(generation.past.gen, generation.until);
    gt_stacks_each(generation.past.gen, look_up, NULL);
}

static void look_ahead(void *has_time, struct gt_stack *s)
{
    gt_frames_look_ahead(s, *(bool (**)(void))has_time);
    gt_watch_poll(gt_clock_monotonic_raw());
}

void gt_generation_look_ahead(bool (*has_time)(void))
{
    GT_ASSERT_DRAIN_SIDE();
    gt_frames_of_time(0, 0); /* what code is made in it is known at its end */
    gt_stacks_each(generation.now.gen, look_ahead, &has_time);
}

void gt_generation_look_up_kept(const struct gt_kept *k)
{
    if (k)
        name_of(k);
    for (uint32_t i = 0; k && i < k->n_stacks; i++)
        look_up(NULL, k->stacks[i]);
}

/* All of it: else what it begins with is in the file, and maybe more. */
static bool waits_in_memory(uint32_t gen)
{
    return gt_format->v1 || gt_sched_covers(gen) || gt_box_is_open();
}

static void write_v2(struct gt_buf *plain, bool whole)
{
    const struct gt_kept *past = &generation.past;
    if (generation.past_early || waits_in_memory(past->gen))
        gt_v2_begin(generation.past_early);
    gt_v2_write(plain);
    gt_v2_end(past->gen, &past->snapshot, generation.until, whole);
}

/* Nothing of a generation can be written before all of it is known. */
static int write_v1(struct gt_buf *plain, bool whole)
{
    uint32_t gen = generation.past.gen;
    int error = gt_v1_write(gen, NULL, generation.past_early, plain, generation.until);
    if (!error && whole)
        gt_v1_end(generation.now.snapshot.units, true);
    return error;
}

static void begin_end(struct gt_buf *early)
{
    bool covered = gt_sched_covers(generation.now.gen);
    struct gt_buf *completed = covered ? gt_sched_end(generation.now.gen, early) : NULL;
    gt_v2_begin(covered ? completed : early);
    gt_buffers_put_all(completed);
}

/* What the next one begins with is not taken: that goes on, here or elsewhere. */
static void write_end(void)
{
    if (gt_format->v1) {
        gt_v1_end(generation.now.snapshot.units, true);
    } else {
        begin_end(generation.early.first);
        gt_v2_end(generation.now.gen, &generation.now.snapshot, 0, true);
    }
}

/* It is in the file: its buffers may go. next: where the ones after it will be, or NULL: there. */
static int commit(uint32_t gen, const char *next, int error)
{
    error = error ? error : gt_output_commit();
    if (!error)
        gt_live_commit(gen, next);
    return error;
}

/* next: the path of another file, for which this one ends; or NULL. */
static int write_past(bool whole, const char *next)
{
    struct gt_buf *plain = gt_buffers_take(generation.past.gen);
    int error = complete(generation.past.gen, &generation.past_early, &plain);
    if (!error && gt_format->v1)
        error = write_v1(plain, whole);
    else if (!error)
        write_v2(plain, whole);
    if (error)
        gt_output_fail(error);
    if (!error && next)
        write_end();
    error = commit(generation.past.gen, next, error);
    gt_sched_written();
    gt_buffers_put_all(plain);
    gt_buffers_put_all(generation.past_early);
    generation.past_early = NULL;
    if (generation.successor == GT_SUCCESSOR_WRITTEN && !waits_in_memory(generation.now.gen)) {
        gt_v2_begin(generation.early.first);
        gt_buffers_put_all(take_early());
    }
    gt_renewal_after_generation(gt_ring_first_era());
    return error;
}

int gt_generation_write(bool whole)
{
    GT_ASSERT_DRAIN_SIDE();
    return write_past(whole, NULL);
}

int gt_generation_write_last(const char *next)
{
    GT_ASSERT_DRAIN_SIDE();
    return write_past(false, next);
}

int gt_generation_write_end(bool goes_on)
{
    GT_ASSERT_DRAIN_SIDE();
    write_end();
    return goes_on ? gt_output_commit() : commit(generation.now.gen, NULL, 0);
}

void gt_generation_forget(void)
{
    gt_buffers_put_all(take_early());
}

void gt_generation_keep(enum gt_successor successor)
{
    GT_ASSERT_DRAIN_SIDE();
    uint64_t until = samples_until(successor);
    uint32_t next = number_of(successor);
    struct gt_buf *early = take_early();
    if (successor == GT_SUCCESSOR_WRITTEN)
        tell_all(next);
    struct gt_kept past = move_on(next);
    watch_next();
    name_of(&past);
    gt_account_collect(past.gen, look_of(successor));
    struct gt_buf *plain = gt_buffers_take(past.gen);
    int error = complete(past.gen, &early, &plain);
    uint64_t events = gt_generation_events();
    past.events = events - generation.events_before;
    generation.events_before = events;
    if (error || !gt_ring_keep(&past, early, plain, until)) {
        gt_ring_clear(); /* what is before a gap is of no use */
        gt_samples_move(until, NULL);
    }
    gt_live_commit(past.gen, "");
    gt_sched_written();
    gt_buffers_put_all(early);
    gt_buffers_put_all(plain);
    gt_renewal_after_generation(gt_ring_first_era());
    gt_ring_trim();
}

int gt_generation_write_kept(const struct gt_kept *k)
{
    GT_ASSERT_DRAIN_SIDE();
    name_of(k);
    if (gt_format->v1)
        return gt_v1_write(k->gen, k, k->early, k->plain, 0);
    gt_v2_write_kept(k);
    return 0;
}

/* Numbers go on: what stacks and strings are marked with was used by the parent, not here. */
void gt_generation_after_fork(void)
{
    uint32_t last = generation.now.gen + 1; /* the parent may have been on its way there */
    atomic_store(&gt_gen.current, 0);
    gt_buffers_put_all(generation.early.first);
    gt_buffers_put_all(generation.past_early);
    memset(&generation, 0, sizeof generation);
    generation.now.gen = last;
}
