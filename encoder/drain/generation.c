/* See generation.h. */
#include "generation.h"

#include "live.h"
#include "renewal.h"
#include "ring.h"

#include "encoder/base/clock.h"
#include "encoder/cpu/cpus.h"
#include "encoder/cpu/samples.h"
#include "encoder/cpu/sched.h"
#include "encoder/cpu/watch.h"
#include "encoder/file/frames.h"
#include "encoder/file/output.h"
#include "encoder/file/v1/v1.h"
#include "encoder/file/v2.h"
#include "encoder/thread/account.h"
#include "encoder/thread/buffers.h"
#include "encoder/thread/switch.h"

#include <string.h>
#include <unistd.h>

static struct {
    struct gt_kept now;     /* the generation under way: gen, and its beginning */
    uint64_t events_before; /* written when it began; counts for kept generations only */
    struct gt_packed early; /* its batches that are not in the file yet; see keep_early */

    /* The generation that is over and not in the file yet. */
    struct gt_kept past;
    struct gt_buf *past_early;
    uint64_t until; /* CPU samples from before that time are in it */
    bool begun;     /* a part of the one under way is written */
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
 * Keeps the status batch of a silent writer, encoded, until the old generation is in the file: the
 * batch must precede all that the writer itself may queue meanwhile.
 */
static void keep_early(uint32_t gen, const struct gt_buf *batch)
{
    gt_batch_pack(&generation.early, gen, batch->m, batch->ts, batch->data, batch->used);
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

/*
 * Moves all writers to generation `next`, or to none. Their states are written in generation
 * `told`; 0: they are not written.
 */
static struct gt_kept move_on_telling(uint32_t next, uint32_t told)
{
    struct gt_kept past = generation.now;
    gt_switch_all(next, told, keep_early);
    note_beginning(past.gen + 1);
    past.end_ns = generation.now.begin_ns;
    return past;
}

/*
 * Moves all writers to generation `next`. Returns the generation that they have left: its buffers
 * are queued. All states are written in the following generation in any case: they may be all of
 * it.
 */
static struct gt_kept move_on(uint32_t next)
{
    return move_on_telling(next, generation.now.gen + 1);
}

/* A reader may begin with generation `next`: all states are written in it. */
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

/* The time before which CPU samples are in this generation. */
static uint64_t samples_until(enum gt_successor successor)
{
    uint64_t until = is_last(successor) ? UINT64_MAX : gt_clock_now();
    gt_watch_read();
    gt_samples_collect();
    return until;
}

/* All threads are in the next generation. */
static void watch_next(void)
{
    bool small = atomic_load(&gt_buffers_queued) < GT_SCHED_BYTES;
    gt_watch_next(generation.now.gen);
    gt_sched_next(generation.now.gen, !generation.begun && small);
    generation.begun = false;
}

/* Completes a generation that is over with the kernel's records. 0 or -errno. */
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

/* Looking up names may take long, and rings fill up meanwhile. */
static bool poll_rings(void)
{
    gt_watch_poll(gt_clock_monotonic_raw());
    return true;
}

static void want(void *wanted, struct gt_stack *s)
{
    gt_frames_want(wanted, s);
}

static void look_up_stacks_of(uint32_t gen, bool (*goes_on)(void))
{
    struct gt_memo wanted = {.slots = NULL};
    gt_stacks_each(gen, want, &wanted);
    gt_frames_look_up(&wanted, goes_on);
}

void gt_generation_look_up(void)
{
    GT_ASSERT_DRAIN_SIDE();
    gt_samples_use(generation.past.gen, generation.until);
    look_up_stacks_of(generation.past.gen, poll_rings);
}

void gt_generation_look_ahead(bool (*has_time)(void))
{
    GT_ASSERT_DRAIN_SIDE();
    gt_frames_of_time(0, 0); /* code that is made in it is known at its end */
    look_up_stacks_of(generation.now.gen, has_time);
}

void gt_generation_look_up_kept(const struct gt_kept *k)
{
    if (k)
        name_of(k);
    struct gt_memo wanted = {.slots = NULL};
    for (uint32_t i = 0; k && i < k->n_stacks; i++)
        gt_frames_want(&wanted, k->stacks[i]);
    gt_frames_look_up(&wanted, poll_rings);
}

/*
 * Whether all of a generation waits in memory until it is over. Else its first statuses are in the
 * file, and maybe more.
 */
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

/*
 * Ends the file with the statuses of the next generation. They are not taken from it: it goes on,
 * in this file or another.
 */
static void write_end(void)
{
    if (gt_format->v1) {
        gt_v1_end(generation.now.snapshot.units, true);
    } else {
        begin_end(generation.early.first);
        gt_v2_end(generation.now.gen, &generation.now.snapshot, 0, true);
    }
}

/*
 * Commits generation gen: it is in the file, so its buffers may be given back. next: the path of
 * the file for the generations after it; NULL: this file.
 */
static int commit(uint32_t gen, const char *next, int error)
{
    error = error ? error : gt_output_commit();
    if (!error)
        gt_live_commit(gen, next);
    return error;
}

/* Writes the closed generation. next: the path of the file that follows this one; or NULL. */
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
        generation.begun = true;
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
        gt_ring_clear(); /* generations before a gap are of no use */
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

/* Numbers go on: stacks and strings are marked with generations of the parent. */
void gt_generation_after_fork(void)
{
    uint32_t last = generation.now.gen + 1; /* the parent may have been moving there */
    atomic_store(&gt_gen.current, 0);
    gt_buffers_put_all(generation.early.first);
    gt_buffers_put_all(generation.past_early);
    memset(&generation, 0, sizeof generation);
    generation.now.gen = last;
}
