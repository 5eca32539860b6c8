/*
 * The bytes of v1 traces. An event is a byte: its number, and above bit 6 how many arguments follow
 * its time, up to two; three there means that the length of all of it in bytes comes first. Numbers
 * are LEB128. Times are differences within the batch; in Go 1.5 a sequence number precedes each.
 */
#include "scene.h"

/* clang-format off */
static const uint8_t go15[] = {
    0x41, 0, 0, 0,                        /* an empty batch, for what belongs to none */
    0x41, 0, 0, 10,                       /* Batch: P 0, from number 0, time 10 */
    0x45, 0, 0, 99,                       /* ProcStart: thread 99 */
    0xcd, 10, 1, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0, /* GoCreate: G 1, begins at 1<<40 */
    0x84, 1, 0, 4, 0,                     /* Gomaxprocs: 4, no stack */
    0x4e, 1, 0, 1,                        /* GoStart: G 1 */
    0xcd, 10, 1, 10, 2, 0xa0, 0x80, 0x80, 0x80, 0x80, 0x20, 0, /* GoCreate: G 2, at 1<<40 + 32 */
    0x95, 4, 30, 2, 0,                    /* GoUnblock: G 2, no stack */
    0x41, 1, 5, 30,                       /* Batch: P 1, from number 5, time 30 */
    0x45, 0, 0, 101,                      /* ProcStart: thread 101 */
    0x4e, 1, 0, 2,                        /* GoStart: G 2 */
    0x59, 1, 10, 1,                       /* GoBlockSync: stack 1 */
    0x4e, 2, 20, 2,                       /* GoStart */
    0x5c, 1, 10, 1,                       /* GoSysCall: stack 1 */
    0x1e, 1, 0,                           /* GoSysBlock */
    0xdd, 5, 1, 10, 2, 12, 80,            /* GoSysExit: G 2, number 12, time 80 */
    0x4e, 1, 0, 2,                        /* GoStart */
    0x51, 1, 10, 0,                       /* GoSched: no stack */
    0x4e, 1, 10, 2,                       /* GoStart */
    0x5b, 1, 10, 0,                       /* GoBlockNet: no stack */
    0x95, 1, 10, 2, 0,                    /* GoUnblock: G 2, by nobody */
    0x4e, 1, 0, 2,                        /* GoStart */
    0x0f, 1, 10,                          /* GoEnd */
    0x06, 1, 0,                           /* ProcStop */
};

static const uint8_t go17_start[] = {
    0x41, 0, 0, 0x41, 0, 10,              /* Batch: P 0, time 10 */
    0x45, 0, 99,                          /* ProcStart */
    0xcd, 8, 0, 1, 0xfe, 0xff, 0xff, 0xff, 7, 0, /* GoCreate: G 1, the stack of main */
    0x84, 0, 4, 0,                        /* Gomaxprocs */
    0x66, 0, 1,                           /* GoStartLocal: G 1 was last seen on this P */
    0xcd, 4, 10, 2, 1, 0,                 /* GoCreate: G 2, stack 1, made without a stack */
    0xd5, 4, 30, 2, 2, 0,                 /* GoUnblock: G 2, its event 2, no stack */
    0x41, 1, 30,                          /* Batch: P 1, time 30 */
    0x45, 0, 101,                         /* ProcStart */
    0x8e, 0, 2, 1,                        /* GoStart: G 2, its event 1 */
    0x59, 10, 1,                          /* GoBlockSync: stack 1 */
    0x8e, 20, 2, 3,                       /* GoStart: G 2, its event 3 */
    0x5c, 10, 1,                          /* GoSysCall: stack 1 */
    0x1e, 0,                              /* GoSysBlock */
};
static const uint8_t exits[] = {
    0xdd, 4, 10, 2, 4, 80,                /* GoSysExit: G 2, its event 4, time 80 */
    0x66, 0, 2,                           /* GoStartLocal */
};
static const uint8_t preempted[] = {
    0x06, 10, 0x45, 0, 101,               /* ProcStop, ProcStart */
    0xdd, 4, 0, 2, 4, 80,                 /* GoSysExit */
    0x66, 0, 2,                           /* GoStartLocal */
    0x52, 0, 1,                           /* GoPreempt: stack 1 */
    0x66, 0, 2,                           /* GoStartLocal */
};
static const uint8_t go17_end[] = {
    0x51, 10, 0,                          /* GoSched */
    0x66, 10, 2,                          /* GoStartLocal */
    0x5b, 10, 0,                          /* GoBlockNet */
    0xa7, 10, 2, 0,                       /* GoUnblockLocal: G 2, no stack */
    0x66, 0, 2,                           /* GoStartLocal */
    0x0f, 10,                             /* GoEnd */
    0x06, 0,                              /* ProcStop */
};
/* clang-format on */

static void expect_header(const char *format, size_t *at_byte)
{
    char header[16] = "";
    strcpy(header, gt_format_find(format)->header);
    scene_record(format);
    scene_expect(format, at_byte, header, sizeof header);
    CHECK_EQ(scene_size % 4096, 0);
}

static void check_15(void)
{
    size_t at_byte = 0;
    expect_header("go1.5", &at_byte);
    scene_expect("go1.5", &at_byte, go15, sizeof go15);
}

static void check_17(const char *format, bool stops)
{
    size_t at_byte = 0;
    expect_header(format, &at_byte);
    scene_expect(format, &at_byte, go17_start, sizeof go17_start);
    if (stops)
        scene_expect(format, &at_byte, preempted, sizeof preempted);
    else
        scene_expect(format, &at_byte, exits, sizeof exits);
    scene_expect(format, &at_byte, go17_end, sizeof go17_end);
}

int main(void)
{
    check_15();
    check_17("go1.7", false);
    check_17("go1.8", false);
    check_17("go1.9", false);
    check_17("go1.10", false);
    check_17("go1.11", true);
    check_17("go1.19", true);
    check_17("go1.21", true);
    return 0;
}
