/*
 * A thread that is cancelled, or jumps, may be torn out of a writer anywhere, and the drain side
 * takes what it has written. Here somebody looks after each instruction: what there is to take are
 * batches of whole events, whatever the buffer held before. x86-64 only, which can be stepped.
 */
#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"

#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#if defined(__x86_64__)

enum { ROUNDS = 12000, PIECES = 3, STALE = 0x5a, TRAP = 0x100 };

#define STEP() __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP) : "memory", "cc")
#define WALK() __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP) : "memory", "cc")

static struct gt_writer writer;
static uint64_t now_units = 1000;
static unsigned looked, cuts, buffers;

static int clock_of_ours(clockid_t clock, struct timespec *ts)
{
    (void)clock;
    *ts = (struct timespec){(time_t)(now_units / 1000000000u), (long)(now_units % 1000000000u)};
    return 0;
}

static int resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    (void)s, (void)index, (void)max;
    *out = (struct gt_frame){.func = "fn", .file = "f.c", .line = 7};
    return 1;
}

/* The time of the last event. */
static uint64_t check_events(const uint8_t *p, const uint8_t *end, uint64_t ts)
{
    while (p < end) {
        int args = *p < GT_EVENTS_END ? gt_event_args[*p] : -1;
        CHECK(args >= 0, "no event: %u", *p);
        p++;
        ts += gt_varint_get(&p, end);
        while (args--)
            gt_varint_get(&p, end);
    }
    CHECK(p == end, "half an event");
    return ts;
}

/* What salvage() of switch.c would take. */
static void check_buffer(const struct gt_buf *buf, uint32_t used)
{
    uint32_t from = buf->cuts > 1 ? buf->cut[buf->cuts - 2].at : 0; /* the last two will do */
    uint64_t ts = buf->cuts > 1 ? buf->cut[buf->cuts - 2].ts : buf->ts;
    if (buf->cuts) {
        const struct gt_cut *cut = &buf->cut[buf->cuts - 1];
        CHECK(cut->at > from && cut->at <= used, "at %u of %u to %u", cut->at, from, used);
        CHECK_EQ(check_events(buf->data + from, buf->data + cut->at, ts), cut->ts);
        from = cut->at;
        ts = cut->ts;
    }
    check_events(buf->data + from, buf->data + used, ts);
}

static void look(int number)
{
    (void)number;
    const struct gt_buf *buf = writer.buf;
    size_t used = buf ? (uintptr_t)writer.pos - (uintptr_t)buf->data : 0;
    looked++;
    if (buf && used && used <= gt_buffers_room(buf))
        check_buffer(buf, (uint32_t)used);
}

static void call_kernel(struct gt_stack *stack)
{
    now_units += 1 + now_units % 200;
    CHECK(gt_writer_pin(&writer), "recording");
    gt_call_write(&writer, now_units - 1, GT_REASON_NONE, stack);
    gt_ev_go_resume(&writer, stack);
    gt_writer_unpin(&writer);
}

/* As a buffer is that has been used before. */
static void spoil(struct gt_buf *buf)
{
    memset(buf->cut + buf->cuts, STALE, (GT_CUTS_MAX - buf->cuts) * sizeof *buf->cut);
    memset(writer.pos, STALE, (size_t)(buf->data + gt_buffers_room(buf) - writer.pos));
    buffers++;
}

/* Step by step where the next event needs more than a few bytes: a piece, or a buffer, is full. */
static void write_events(struct gt_stack *stack)
{
    const struct gt_buf *spoilt = NULL;
    for (int i = 0; i < ROUNDS; i++) {
        bool full = writer.end - writer.pos < GT_EVENT_ROOM;
        uint32_t before = writer.buf->cuts;
        if (writer.buf != spoilt)
            spoil(writer.buf);
        spoilt = writer.buf;
        if (full || i < PIECES)
            STEP();
        call_kernel(stack);
        WALK();
        cuts += writer.buf == spoilt && writer.buf->cuts > before;
    }
}

int main(void)
{
    static const uint64_t pc = 0x1000;
    struct sigaction action = {.sa_handler = look};
    sigaction(SIGTRAP, &action, NULL);
    gt_clock_read = clock_of_ours;
    gt_clock = (struct gt_clock){.hardware = false, .hz = 187654321, .rough_hz = 187654321};
    gt_drain_open(&(struct gt_drain_config){
        .file = {.path = "/dev/null", .format = gt_format_find("go1.23")}, .names = {resolve}});
    struct gt_stack *stack = gt_stacks_get(&pc, 1, 1);
    writer.g.id = 1;
    writer.m = 100;
    gt_writer_register(&writer);
    CHECK(gt_writer_pin(&writer), "recording");
    gt_ev_thread_running(&writer);
    gt_writer_unpin(&writer);
    write_events(stack);
    gt_drain_finish();
    CHECK(cuts > 50 && buffers > 2 && looked > 100 * cuts, "%u cuts, %u buffers, %u looks", cuts,
          buffers, looked);
    return 0;
}

#else

int main(void)
{
    return 77;
}

#endif
