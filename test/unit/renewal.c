/*
 * Stacks and strings are given back: when, and that what is in use stays what it is. With no thread
 * but this one, which is the drain side too and says whether "it is inside". FRESH_STACKS=10000000
 * makes so many.
 */
#include "encoder/drain/child.h"
#include "encoder/drain/drain.h"
#include "encoder/drain/generation.h"
#include "encoder/drain/recording.h"
#include "encoder/drain/ring.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"

#include "check.h"

#include <string.h>

enum { SHARE = (64 << 10) + sizeof(struct gt_era), PCS = 10 };

static struct gt_writer w;
static bool inside;
static uint32_t epoch = 1, forgotten;

static bool is_inside(const struct gt_writer *which)
{
    CHECK(which == &w);
    return inside;
}

static void age(void)
{
    epoch++;
}

static void forget(void)
{
    forgotten++;
}

static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    static char name[32];
    (void)max;
    snprintf(name, sizeof name, "f%" PRIx64, s->pcs[index]);
    *out = (struct gt_frame){.func = name, .file = "f.c"};
    return 1;
}

static struct gt_stack *stack_of(uint64_t n)
{
    uint64_t pcs[PCS];
    for (int i = 0; i < PCS; i++)
        pcs[i] = 0x400000 + (uint64_t)i * 16;
    pcs[PCS - 1] += n << 8;
    return gt_stacks_get(pcs, PCS, epoch);
}

static int eras(void)
{
    int n = 0;
    for (struct gt_era *era = gt_era_now(); era; era = era->older)
        n++;
    return n;
}

static uint64_t fresh;

static void fill(void)
{
    while (!gt_era_is_crowded())
        CHECK(stack_of(++fresh), "memory");
}

static struct gt_lock side; /* in place of drain.c's */

/* One generation; a snapshot ends two. */
static void next(void)
{
    gt_lock(&side, GT_RANK_SIDE);
    CHECK(gt_recording_advance(UINT64_MAX), "it is due");
    gt_unlock(&side);
}

static void renew(void)
{
    gt_lock(&side, GT_RANK_SIDE);
    gt_generation_renew();
    gt_unlock(&side);
}

static void begin(const char *path, const char *format, uint64_t ring)
{
    gt_drain_open(&(struct gt_drain_config){.file = {path, gt_format_find(format)},
                                            .memory = {.ring_bytes = ring},
                                            .names = {resolve},
                                            .renewal = {is_inside, age, forget}});
    gt_era_set_share(SHARE, NULL);
    memset(&w, 0, sizeof w);
    w.g.id = 1;
    w.m = 7;
    gt_writer_register(&w);
    CHECK(gt_writer_pin(&w));
    w.g.routine = stack_of(0);
    gt_ev_thread_running(&w);
    gt_ev_go_label(&w, gt_strings_intern("a name"));
    CHECK(gt_ev_go_block(&w, gt_clock_now(), GT_REASON_SYNC, stack_of(1)), "running");
    gt_writer_unpin(&w);
}

/* The three steps of renewal.h, and that none is taken while the thread is inside. */
static void check_steps(void)
{
    uint32_t id = w.g.wait_stack->id, was = gt_era_now()->number;
    forgotten = 0;
    fill();
    inside = true;
    uint32_t before = epoch;
    next();
    CHECK_EQ(gt_era_now()->number, was + 1);
    CHECK_EQ(epoch, before + 1);
    CHECK_EQ(w.g.wait_stack->era, was + 1);
    CHECK_EQ(w.g.routine->era, was + 1);
    CHECK_EQ(w.label->era, was + 1);
    CHECK(w.g.wait_stack->id != id && w.g.wait_stack->n == PCS, "another entry");
    CHECK(w.g.wait_stack->pcs[PCS - 1] - w.g.routine->pcs[PCS - 1] == 1 << 8, "the same stacks");
    CHECK(strcmp(w.label->text, "a name") == 0, "the same name");
    for (int i = 0; i < 5; i++)
        next();
    CHECK(eras() == 2 && !forgotten, "the thread is inside");
    inside = false;
    next();
    CHECK(eras() == 2 && !forgotten, "it may have put something into its state");
    inside = true;
    next();
    CHECK(eras() == 2 && !forgotten, "or have taken it from there");
    inside = false;
    next();
    CHECK(eras() == 1 && forgotten == 1, "given back");
    CHECK_EQ(gt_era_now()->number, was + 1);
}

/* What a hook found before, and uses afterwards, is in the file's tables nevertheless. */
static void check_late_use(void)
{
    fill();
    inside = true;
    struct gt_stack *old = stack_of(++fresh);
    next();
    CHECK(old->era != gt_era_now()->number, "a new era");
    CHECK(gt_writer_pin(&w));
    gt_ev_go_resume(&w, old);
    gt_ev_go_block(&w, gt_clock_now(), GT_REASON_SYNC, old);
    gt_writer_unpin(&w);
    CHECK(w.g.wait_stack == old, "used");
    inside = false;
    next(); /* writes it */
    CHECK(w.g.wait_stack != old && w.g.wait_stack->era == gt_era_now()->number, "made anew");
    CHECK(w.g.wait_stack->pcs[PCS - 1] == old->pcs[PCS - 1], "the same stack");
    next();
    CHECK_EQ(eras(), 1);
}

/* However many there are. */
static void check_bound(void)
{
    const char *n = getenv("FRESH_STACKS");
    uint64_t end = fresh + (n ? strtoull(n, NULL, 10) : 100000);
    size_t most = 0;
    while (fresh < end) {
        fill();
        next();
        size_t bytes = 0;
        for (struct gt_era *era = gt_era_now(); era; era = era->older)
            bytes += era->bytes;
        most = bytes > most ? bytes : most;
    }
    CHECK(most < 3 * (size_t)SHARE, "%zu bytes", most);
    for (int i = 0; i < 6; i++)
        next();
    CHECK_EQ(eras(), 1);
    CHECK_EQ(gt_stacks_lost(), 0);
}

/* A thread that stands still inside: then there is an end, which is counted. */
static void check_cap(void)
{
    fill();
    inside = true;
    next();
    uint32_t n = 0;
    while (stack_of(++fresh))
        CHECK(n++ < 4 * SHARE / (PCS * 8), "an end");
    CHECK(atomic_load(&gt_era_full), "threads should wait");
    CHECK_EQ(gt_stacks_lost(), 1);
    CHECK(gt_era_now()->bytes < 5 * (size_t)SHARE, "%zu bytes", gt_era_now()->bytes);
    inside = false;
    for (int i = 0; i < 6; i++)
        next();
    CHECK(stack_of(++fresh), "it goes on");
    CHECK(!atomic_load(&gt_era_full), "nobody waits");
    CHECK_EQ(eras(), 1);
    CHECK_EQ(gt_recording_summary().stacks_lost, 1);
    CHECK_EQ(gt_drain_command(GT_DRAIN_STOP, NULL), 0);
    CHECK_EQ(gt_drain_command(GT_DRAIN_START, NULL), 0);
    CHECK_EQ(gt_recording_summary().stacks_lost, 0); /* of this one */
}

/* Generations that the flight recorder keeps keep their stacks, and those count. */
static void check_ring(const char *path)
{
    enum { RING = 1 << 20 };
    static char snapshot[64];
    gt_drain_finish();
    gt_encoder_after_fork();
    begin(path, "go1.23", RING);
    uint32_t first = gt_era_now()->number;
    int most = 0;
    for (int i = 0; i < 100; i++) {
        fill();
        CHECK(gt_writer_pin(&w));
        gt_ev_go_resume(&w, stack_of(fresh));
        gt_ev_go_block(&w, gt_clock_now(), GT_REASON_SYNC, stack_of(fresh));
        gt_writer_unpin(&w);
        snprintf(snapshot, sizeof snapshot, "%s.%d", path, i);
        CHECK_EQ(gt_drain_command(GT_DRAIN_SNAPSHOT, snapshot), 0);
        unlink(snapshot);
        CHECK(gt_ring_memory() + gt_era_past_bytes() <= RING, "%zu + %zu", gt_ring_memory(),
              gt_era_past_bytes());
        most = eras() > most ? eras() : most;
    }
    CHECK(gt_era_now()->number > first + 20, "renewed");
    CHECK(most > 3, "%d eras are kept", most);
    const struct gt_kept *k = gt_ring_newest(SIZE_MAX);
    CHECK_EQ(gt_ring_first_era(), k->era);
    for (; k; k = k->next)
        for (uint32_t i = 0; i < k->n_stacks; i++)
            CHECK(k->stacks[i]->n == PCS && k->stacks[i]->era >= k->era, "still there");
}

/* While nothing is recorded, generations pass for this alone. */
static void check_mute(void)
{
    CHECK_EQ(gt_drain_command(GT_DRAIN_STOP, NULL), 0);
    CHECK(eras() <= 2 && !gt_era_past_bytes(), "%d eras, and no ring", eras());
    for (int i = 0; i < 6; i++)
        renew();
    CHECK_EQ(eras(), 1); /* the ring is empty */
    uint32_t number = gt_era_now()->number, gen = gt_gen.current;
    uint64_t events = gt_switch_events();
    fill();
    for (int i = 0; i < 3; i++) {
        renew();
        CHECK(gt_gen_is_mute(gt_gen.current) && gt_gen_is_mute(gen), "mute");
    }
    CHECK_EQ(gt_gen.current, gen + 3);
    CHECK(!gt_gen_is_mute(gen - 7) && !gt_gen_is_mute(gen + 4), "no others");
    CHECK_EQ(gt_era_now()->number, number + 1);
    CHECK_EQ(eras(), 1);
    CHECK_EQ(w.g.wait_stack->era, number + 1);
    CHECK_EQ(gt_switch_events(), events);
}

/* A thread that may have jumped is not waited for; what it may have stays. */
static void check_jump(void)
{
    fill();
    inside = true;
    renew();
    gt_writer_jumped(&w);
    int before = eras();
    for (int i = 0; i < 4; i++)
        renew();
    CHECK_EQ(eras(), before);
    for (int k = 0; k < 5; k++) {
        fill();
        for (int i = 0; i < 3; i++)
            renew();
    }
    CHECK_EQ(eras(), before + 1); /* two that stay, and the newest */
}

/* One that is given up has a state that nobody renews: what it may have stays, too. */
static void check_given_up(const char *path)
{
    gt_drain_finish();
    gt_encoder_after_fork();
    begin(path, "go1.23", 0);
    fill();
    const struct gt_stack *stack = w.g.wait_stack;
    CHECK(gt_writer_pin(&w));
    gt_debug_pin(NULL); /* as if by another thread */
    gt_switch_set_deadline(1);
    next();
    gt_switch_set_deadline(0);
    gt_writer_unpin(&w);
    CHECK(gt_writer_gone(&w) && w.g.wait_stack == stack, "given up");
    CHECK(stack->era != gt_era_now()->number, "a new era");
    int before = eras();
    inside = false;
    for (int i = 0; i < 6; i++)
        next();
    CHECK_EQ(eras(), before);
    CHECK_EQ(stack->n, PCS);
}

int main(void)
{
    static char path[] = "/tmp/gt-renewal-XXXXXX";
    static const char *const formats[] = {"go1.23", "go1.21"};
    close(mkstemp(path));
    gt_clock_init();
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        begin(path, formats[i], 0);
        check_steps();
        check_steps();
        check_late_use();
        check_bound();
        gt_drain_finish();
        CHECK_EQ(gt_recording_summary().error, 0);
        gt_encoder_after_fork();
    }
    begin(path, "go1.23", 0);
    check_cap();
    check_ring(path);
    check_mute();
    check_jump();
    check_given_up(path);
    gt_drain_finish();
    unlink(path);
    return 0;
}
