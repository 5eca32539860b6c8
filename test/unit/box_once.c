/*
 * The black box has each event once, at any moment of a change of generations: the process may be
 * killed there. A status that stood twice was read again behind later events of its thread, which
 * then contradicted it.
 */
#include "encoder/base/clock.h"
#include "encoder/thread/batch.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/switch.h"

#include "encoder/base/box.h"

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { OLD = 1, NEW = 2 };

static struct gt_writer creator, silent, unborn;
static struct gt_packed early;
static uint32_t told;

static uint32_t buffers_of(uint32_t gen)
{
    uint32_t n = 0;
    for (uint64_t at = gt_box->buffers; at < gt_box->buffers_end; at += GT_BUF_BYTES)
        n += ((const struct gt_buf *)((const char *)gt_box + at))->gen == gen;
    return n;
}

static void creator_moves(void)
{
    CHECK(gt_writer_pin(&creator), "generation %d", NEW);
    gt_writer_unpin(&creator);
}

/* Keeps the batch as the drain side does. The creator moves before the unborn thread is told of. */
static void emit(uint32_t gen, const struct gt_buf *batch)
{
    CHECK_EQ(gen, NEW);
    CHECK(gt_box_has(batch), "what is told is made in the box");
    CHECK(gt_batch_pack(&early, gen, batch->m, batch->ts, batch->data, batch->used), "memory");
    CHECK_EQ(buffers_of(NEW), 1 + (creator.buf && gt_writer_gen(&creator) == NEW));
    if (told++ == 0)
        creator_moves();
}

static void start(struct gt_writer *w, uint32_t m)
{
    w->m = w->g.id = m;
    gt_writer_register(w);
    CHECK(gt_writer_pin(w), "generation %d", OLD);
    gt_ev_thread_running(w);
    gt_writer_unpin(w);
}

static void create(void)
{
    unborn.m = unborn.g.id = 3;
    gt_writer_register(&unborn);
    CHECK(gt_writer_pin(&creator), "generation %d", OLD);
    gt_ev_go_create(&creator, &unborn.g, NULL, NULL);
    gt_writer_unpin(&creator);
}

int main(void)
{
    static struct gt_lock side;
    gt_clock_init();
    gt_format = gt_format_find("go1.23");
    gt_switch_init();
    CHECK_EQ(gt_box_open(memfd_create("box", 0), 0, 1 << 20, 32 * GT_BUF_BYTES, 0), 0);
    atomic_store(&gt_gen.current, OLD);
    start(&creator, 1);
    start(&silent, 2);
    create();
    gt_lock(&side, GT_RANK_SIDE);
    gt_switch_all(NEW, NEW, emit);
    gt_unlock(&side);
    CHECK_EQ(told, 2);            /* the silent thread and the unborn one */
    CHECK_EQ(buffers_of(NEW), 2); /* the batches, and the creator's buffer */
    return 0;
}
