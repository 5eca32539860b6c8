/*
 * The bytes of v2 traces where the versions differ: the header, what follows a system call, the
 * clock, the end of a generation. An event is a byte and LEB128 numbers, the first the time since
 * the event before.
 */
#include "scene.h"

/* Where these bytes begin, or 0. */
static size_t find(const void *bytes, size_t size)
{
    uint8_t *p = memmem(scene_file, scene_size, bytes, size);
    return p ? (size_t)(p - scene_file) : 0;
}

/* clang-format off */
static const uint8_t first_thread[] = {
    13, 10, 0, 1,                         /* ProcStatus: P 0 runs */
    25, 0, 1, 99, 2,                      /* GoStatus: G 1 runs on M 99 */
    9, 0, 4, 0,                           /* ProcsChange: 4, no stack */
    14, 10, 2, 1, 0,                      /* GoCreate: G 2, stack 1, made without a stack */
    21, 30, 2, 2, 0,                      /* GoUnblock: G 2, its event 2, no stack */
};
static const uint8_t second_thread[] = {
    13, 30, 1, 2,                         /* ProcStatus: P 1 is idle */
    10, 0, 1, 1,                          /* ProcStart: P 1, its event 1 */
    16, 0, 2, 1,                          /* GoStart: G 2, its event 1 */
    20, 10, 1, 1,                         /* GoBlock: "sync", stack 1 */
    16, 20, 2, 3,                         /* GoStart: G 2, its event 3 */
    22, 10, 2, 1,                         /* GoSyscallBegin: P's event 2, stack 1 */
    23, 10,                               /* GoSyscallEnd */
};
static const uint8_t stop_start[] = {
    19, 0, 6, 1,                          /* GoStop: "preempted", stack 1 */
    16, 0, 2, 4,                          /* GoStart: G 2, its event 4 */
};
static const uint8_t status_stack[] = {
    48, 0, 2, 101, 2, 1,                  /* GoStatusStack: G 2 runs on M 101, stack 1 */
};
static const uint8_t yield[] = {
    19, 10, 4, 0,                         /* GoStop: "runtime.Gosched", no stack */
};
static const uint8_t frequency[] = {
    1, 1, 0, 0x8c, 1, 6,                  /* EventBatch: generation 1, no M, time 140, 6 bytes */
    8, 0x80, 0x94, 0xeb, 0xdc, 3,         /* Frequency: 1e9 */
};
static const uint8_t sync_batch[] = {
    1, 1, 0, 1, 20,                       /* EventBatch: generation 1, no M, time 1, 20 bytes */
    50,                                   /* Sync */
    8, 0x80, 0x94, 0xeb, 0xdc, 3,         /* Frequency: 1e9 */
    51, 0,                                /* ClockSnapshot: at the batch's time */
    0x80, 0x94, 0xeb, 0xdc, 3,            /* monotonic: 1e9 ns */
    0x81, 0xe2, 0xcf, 0xaa, 6,            /* wall: 1700000001 s */
    0,                                    /* and 0 ns */
};
/* The file's end, as a generation of its own. */
static const uint8_t last_states[] = {
    1, 2, 99, 50, 9,                      /* EventBatch: generation 2, M 99, from time 50, 9 bytes */
    13, 90, 0, 1,                         /* ProcStatus, at 140: P 0 runs */
    25, 0, 1, 99, 2,                      /* GoStatus: G 1 runs on M 99 */
};
static const uint8_t whole[] = {
    5, 17, 13, 'g', 'o', 't', 'r', 'a', 'c', 'e', '-', 'w', 'h', 'o', 'l', 'e', /* String 17 */
};
static const uint8_t last_frequency[] = {
    1, 2, 0, 0x8c, 1, 6,                  /* EventBatch: generation 2, no M, time 140, 6 bytes */
    8, 0x80, 0x94, 0xeb, 0xdc, 3,         /* Frequency: 1e9 */
};
static const uint8_t last_sync_batch[] = {
    1, 2, 0, 0x8c, 1, 21,                 /* EventBatch: generation 2, no M, time 140, 21 bytes */
    50,                                   /* Sync */
    8, 0x80, 0x94, 0xeb, 0xdc, 3,         /* Frequency: 1e9 */
    51, 0,                                /* ClockSnapshot: at the batch's time */
    0x8b, 0x95, 0xeb, 0xdc, 3,            /* monotonic: 1e9 + 139 ns */
    0x81, 0xe2, 0xcf, 0xaa, 6,            /* wall: 1700000001 s */
    0x8b, 1,                              /* and 139 ns */
};
/* clang-format on */

enum after_call { NOTHING, STOP_START, STATUS };

static void check(const char *format, enum after_call after, bool snapshot, bool end_marker)
{
    char header[16] = "";
    size_t at_byte = 0;
    strcpy(header, gt_format_find(format)->header);
    scene_record(format);
    scene_expect(format, &at_byte, header, sizeof header);
    CHECK(find(first_thread, sizeof first_thread), "%s: no first thread", format);
    at_byte = find(second_thread, sizeof second_thread);
    CHECK(at_byte, "%s: no second thread", format);
    at_byte += sizeof second_thread;
    if (after == STATUS)
        scene_expect(format, &at_byte, status_stack, sizeof status_stack);
    if (after == STOP_START)
        scene_expect(format, &at_byte, stop_start, sizeof stop_start);
    scene_expect(format, &at_byte, yield, sizeof yield);
    at_byte = snapshot ? find(sync_batch, sizeof sync_batch) : find(frequency, sizeof frequency);
    CHECK(at_byte, "%s: no clock", format);
    at_byte += snapshot ? sizeof sync_batch : sizeof frequency;
    if (end_marker)
        scene_expect(format, &at_byte, (const uint8_t[]){52}, 1);
    scene_expect(format, &at_byte, last_states, sizeof last_states);
    CHECK(find(whole, sizeof whole) > at_byte, "%s: not said to be whole", format);
    at_byte = scene_size - end_marker - (snapshot ? sizeof last_sync_batch : sizeof last_frequency);
    if (snapshot)
        scene_expect(format, &at_byte, last_sync_batch, sizeof last_sync_batch);
    else
        scene_expect(format, &at_byte, last_frequency, sizeof last_frequency);
    if (end_marker)
        scene_expect(format, &at_byte, (const uint8_t[]){52}, 1);
}

int main(void)
{
    check("go1.22", STOP_START, false, false);
    check("go1.23", STATUS, false, false);
    check("go1.25", STATUS, true, false);
    check("go1.26", NOTHING, true, true);
    return 0;
}
