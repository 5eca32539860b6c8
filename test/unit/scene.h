/*
 * One small scene, recorded in any format with a clock that the test sets: what the tests of
 * the bytes of a trace look at. Two threads; the second is created, waits, is woken, calls into the
 * kernel, yields, waits for the network, ends. Included by one file each.
 */
#pragma once

#include "encoder/drain/drain.h"
#include "encoder/drain/recording.h"
#include "encoder/thread/call.h"
#include "encoder/thread/events.h"
#include "encoder/thread/room.h"
#include "encoder/thread/states.h"
#include "encoder/thread/switch.h"

#include "check.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t scene_ns;
static uint8_t scene_file[1 << 16];
static size_t scene_size;

static int scene_clock(clockid_t clock, struct timespec *ts)
{
    uint64_t t = scene_ns + (clock == CLOCK_REALTIME ? 1700000000000000000u : 0);
    ts->tv_sec = (time_t)(t / 1000000000u);
    ts->tv_nsec = (long)(t % 1000000000u);
    return 0;
}

static int scene_resolve(const struct gt_stack *s, uint32_t index, struct gt_frame *out, int max)
{
    (void)s, (void)index, (void)max;
    *out = (struct gt_frame){.func = "fn", .file = "f.c", .line = 7};
    return 1;
}

static void at(struct gt_writer *w, uint64_t units)
{
    scene_ns = 1000000000u + units - 1;
    CHECK(gt_writer_pin(w), "recording");
}

static void scene_call(struct gt_writer *w, struct gt_stack *stack)
{
    at(w, 70);
    CHECK(gt_call_announce(w, 70, GT_REASON_NONE, stack), "running");
    gt_writer_unpin(w);
    CHECK(gt_call_withdraw(w, 70), "unseen");
    at(w, 80);
    gt_call_write(w, 70, GT_REASON_NONE, stack);
    gt_ev_go_resume(w, stack);
    gt_writer_unpin(w);
}

static void scene_play(struct gt_writer *a, struct gt_writer *b)
{
    static const uint64_t pc = 0x1000;
    struct gt_stack *stack = gt_stacks_get(&pc, 1, 1);
    CHECK_EQ(stack->id, 1);
    at(a, 10);
    gt_ev_thread_running(a);
    gt_ev_procs_change(a, 4, NULL);
    gt_writer_unpin(a);
    at(a, 20);
    gt_ev_go_create(a, &b->g, stack, NULL);
    gt_writer_unpin(a);
    at(b, 30);
    gt_ev_thread_start(b);
    gt_writer_unpin(b);
    at(b, 40);
    gt_ev_go_block(b, 40, GT_REASON_SYNC, stack);
    gt_writer_unpin(b);
    at(a, 50);
    CHECK(gt_ev_go_unblock(a, &b->g, NULL), "pinned");
    gt_writer_unpin(a);
    at(b, 60);
    gt_ev_go_resume(b, NULL);
    gt_writer_unpin(b);
    scene_call(b, stack);
    at(b, 90);
    gt_ev_go_stop(b, 90, GT_REASON_YIELD, NULL);
    gt_writer_unpin(b);
    at(b, 100);
    gt_ev_go_resume(b, NULL);
    gt_writer_unpin(b);
    at(b, 110);
    gt_ev_go_block(b, 110, GT_REASON_NETWORK, NULL);
    gt_writer_unpin(b);
    at(b, 120);
    gt_ev_go_resume(b, NULL);
    gt_writer_unpin(b);
    at(b, 130);
    gt_ev_thread_end(b);
    gt_writer_unpin(b);
}

/* What the first thread does after the second has ended. */
static void (*scene_epilogue)(struct gt_writer *a);

static void scene_write(const char *path, const char *format)
{
    static struct gt_writer a, b;
    a.g.id = 1, a.m = 99;
    b.g.id = 2, b.m = 101;
    scene_ns = 1000000000u;
    gt_clock_read = scene_clock;
    gt_clock = (struct gt_clock){.hardware = false, .base = scene_ns, .mono0 = scene_ns};
    gt_drain_open(&(struct gt_drain_config){
        .file = {.path = path, .format = gt_format_find(format), .program = "scene"},
        .names = {scene_resolve}});
    gt_writer_register(&a);
    gt_writer_register(&b);
    scene_play(&a, &b);
    scene_ns = 1000000000u + 139;
    if (scene_epilogue)
        scene_epilogue(&a);
    gt_drain_finish();
    CHECK_EQ(gt_recording_summary().error, 0);
}

/* Leaves the file's bytes in scene_file. In a process of its own: numbers begin anew. */
static void scene_record(const char *format)
{
    static char path[] = "/tmp/gt-scene-XXXXXX";
    int status;
    close(mkstemp(path));
    pid_t pid = fork();
    if (pid == 0) {
        scene_write(path, format);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s", path);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, scene_file, sizeof scene_file);
    CHECK(n > 16, "%s", path);
    scene_size = (size_t)n;
    close(fd);
    unlink(path);
    strcpy(path, "/tmp/gt-scene-XXXXXX");
}

/* Whether the file has these bytes at *at, and moves that past them. */
static void scene_expect(const char *what, size_t *at_byte, const void *bytes, size_t size)
{
    const uint8_t *expected = bytes;
    for (size_t i = 0; i < size; i++)
        CHECK(scene_file[*at_byte + i] == expected[i], "%s, byte %zu of %zu: got %#x, expected %#x",
              what, i, size, scene_file[*at_byte + i], expected[i]);
    *at_byte += size;
}
