/*
 * The bytes of v1 traces. An event is a byte: its number, and above bit 6 how many arguments follow
 * its time, up to two; three there means that the length of all of it in bytes comes first. Numbers
 * are LEB128. Times are differences within the batch; in Go 1.5 a sequence number precedes each.
 */
#include "scene.h"

#include "encoder/format/origin.h"

/* Of a PC where no code can be: the last seven of its bits. */
#define LAST ((GT_ARCH_USER_END >> 42) - 1)

enum { PAGE = 4096, PREFIX = 16, CPUS = 0xf1 };

/* clang-format off */
static const uint8_t go15[] = {
    0x41, 0, 0, 0,                        /* an empty batch, for what belongs to none */
    0x41, 0, 0, 1,                        /* Batch: P 0, from number 0, time 1 */
    0x84, 0, 0, CPUS, 0,                  /* Gomaxprocs, no stack */
    0x45, 3, 9, 99,                       /* ProcStart: thread 99; each event leaves room for two */
    0xcd, 10, 3, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0, /* GoCreate: G 1, begins at 1<<40 */
    0x4e, 3, 0, 1,                        /* GoStart: G 1 */
    0x84, 3, 0, 4, 0,                     /* Gomaxprocs: 4 */
    0xcd, 10, 3, 10, 2, 0xa0, 0x80, 0x80, 0x80, 0x80, 0x20, 0, /* GoCreate: G 2, at 1<<40 + 32 */
    0x95, 12, 30, 2, 0,                   /* GoUnblock: G 2, no stack */
    0x52, 39, 80, 0,                      /* GoPreempt: the end of the generation */
    0x41, 1, 18, 30,                      /* Batch: P 1, from number 18, time 30 */
    0x45, 0, 0, 101,                      /* ProcStart: thread 101 */
    0x4e, 3, 0, 2,                        /* GoStart: G 2 */
    0x59, 3, 10, 1,                       /* GoBlockSync: stack 1 */
    0x4e, 6, 20, 2,                       /* GoStart */
    0x5c, 3, 10, 1,                       /* GoSysCall: stack 1 */
    0x1e, 3, 0,                           /* GoSysBlock */
    0xdd, 5, 3, 10, 2, 39, 80,            /* GoSysExit: G 2, number 39, time 80 */
    0x4e, 3, 0, 2,                        /* GoStart */
    0x51, 3, 10, 0,                       /* GoSched: no stack */
    0x4e, 3, 10, 2,                       /* GoStart */
    0x5b, 3, 10, 0,                       /* GoBlockNet: no stack */
    0x95, 3, 10, 2, 0,                    /* GoUnblock: G 2, by nobody */
    0x4e, 3, 0, 2,                        /* GoStart */
    0x0f, 3, 10,                          /* GoEnd */
    0x06, 3, 0,                           /* ProcStop */
};
static const uint8_t go15_tables[] = {
    0x02, 0x80, 0x94, 0xeb, 0xdc, 3, 0,   /* Frequency: 1e9, and an unused 0 */
    0xc3, 12, 0xfe, 0xff, 0xff, 0xff, 7, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x20, /* Stack: main's */
    0xc3, 12, 0xff, 0xff, 0xff, 0xff, 7, 1, 0x91, 0x80, 0x80, 0x80, 0x80, 0x20, /* unknown ones' */
    0xc3, 8, 1, 1, 0xa1, 0x80, 0x80, 0x80, 0x80, 0x20, /* Stack 1: the address after 1<<40 + 32 */
    0xc3, 13, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x20,
    0xc3, 13, 0xa0, 0x80, 0x80, 0x80, 0x80, 0x20, 1, 0xa1, 0x80, 0x80, 0x80, 0x80, 0x20, /* routines */
};

static const uint8_t go17_start[] = {
    0x41, 0, 0, 0x41, 0, 1,               /* Batch: P 0, time 1 */
    0x84, 0, CPUS, 0,                     /* Gomaxprocs, no stack */
    0x45, 9, 99,                          /* ProcStart */
    0xcd, 8, 0, 1, 0xfe, 0xff, 0xff, 0xff, 7, 0, /* GoCreate: G 1, the stack of main */
    0x66, 0, 1,                           /* GoStartLocal: G 1 was last seen on this P */
    0x84, 0, 4, 0,                        /* Gomaxprocs: 4 */
    0xcd, 4, 10, 2, 1, 0,                 /* GoCreate: G 2, stack 1, made without a stack */
    0xd5, 4, 30, 2, 2, 0,                 /* GoUnblock: G 2, its event 2, no stack */
    0x52, 80, 0,                          /* GoPreempt: the end of the generation */
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
static const uint8_t go17_tables[] = {
    0x02, 0x80, 0x94, 0xeb, 0xdc, 3,      /* Frequency: 1e9 */
    0x25, 17, 4, 'm', 'a', 'i', 'n',      /* String 17; the ids up to 14 are always there */
    0xc3, 16, 0xfe, 0xff, 0xff, 0xff, 7, 1, /* Stack of main: 1 frame */
        0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, LAST, 17, 0, 0, /* its PC, function, file (none), line */
    0x25, 18, 9, '(', 'u', 'n', 'k', 'n', 'o', 'w', 'n', ')',
    0xc3, 16, 0xff, 0xff, 0xff, 0xff, 7, 1,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, LAST, 18, 0, 0,
    0x25, 15, 2, 'f', 'n', 0x25, 16, 3, 'f', '.', 'c', /* names that were looked up before */
    0xc3, 7, 1, 1, 0x80, 0x20, 15, 16, 7, /* Stack 1: PC 0x1000, "fn", "f.c", 7 */
    0x25, 1, 4, 's', 'y', 'n', 'c',
    0x25, 2, 17, 's', 'y', 'n', 'c', '.', '(', '*', 'C', 'o', 'n', 'd', ')', '.', 'W', 'a', 'i', 't',
    0x25, 3, 5, 's', 'l', 'e', 'e', 'p',
    0x25, 4, 15, 'r', 'u', 'n', 't', 'i', 'm', 'e', '.', 'G', 'o', 's', 'c', 'h', 'e', 'd',
    0x25, 5, 7, 'n', 'e', 't', 'w', 'o', 'r', 'k',
    0x25, 6, 9, 'p', 'r', 'e', 'e', 'm', 'p', 't', 'e', 'd',
    0x25, 7, 2, 'G', 'C',
    0x25, 8, 6, 'u', 'n', 's', 'e', 'e', 'n',
    0x25, 9, 7, 'h', 'e', 'l', 'd', ' ', 'b', 'y',
    0x25, 10, 9, 'w', 'a', 'i', 't', 's', ' ', 'f', 'o', 'r',
    0x25, 11, 8, 'w', 'a', 'k', 'e', 's', ' ', 'a', 't',
    0x25, 12, 12, 'w', 'a', 'k', 'e', 's', ' ', 'a', 'l', 'l', ' ', 'a', 't',
    0x25, 13, 32, 'r', 'u', 'n', 't', 'i', 'm', 'e', '.', 'G', 'o', 's', 'c', 'h', 'e', 'd', ',', ' ', 'a', 'g', 'a', 'i', 'n', ' ', 'a', 'n', 'd', ' ', 'a', 'g', 'a', 'i', 'n',
    0x25, 14, 15, 'w', 'a', 'i', 't', 's', ' ', 'a', 'g', 'a', 'i', 'n', ' ', 'f', 'o', 'r',
};

/* The file's end, in a page of its own. */
static const uint8_t end15[] = {
    0x41, 0, 67, 0x82, 1,                 /* Batch: P 0, from number 67, time 130 */
    0x4e, 0, 0, 1,                        /* GoStart: G 1, where it was stopped */
    0x84, 2, 10, CPUS, 0,                 /* Gomaxprocs, no stack */
    0x52, 3, 0, 0,                        /* GoPreempt */
    0xc3, 8, 0, 1, 0xf7, 0xd0, 0xbd, 0xe3, 0xd6, 0x0c, /* Stack 0, one frame: "whole" */
};
static const uint8_t end17[] = {
    0x41, 0, 0x82, 1,                     /* Batch: P 0, time 130 */
    0x66, 0, 1,                           /* GoStartLocal: G 1 */
    0x84, 10, CPUS, 0,                    /* Gomaxprocs, no stack */
    0x52, 0, 0,                           /* GoPreempt */
    0xc3, 11, 0, 1, 0xf7, 0xd0, 0xbd, 0xe3, 0xd6, 0x0c, 0, 0, 0, /* Stack 0 */
};

/* The epilogue: ALLOCS times HeapAlloc, one time unit after the other, then a collection. */
struct cuts {
    uint8_t alloc[5], stop[5], start[5], next[5]; /* a length and so many bytes */
    uint8_t gc[16];
};
static const struct cuts cuts15 = {
    {4, 0x61, 3, 1, 5},                   /* HeapAlloc: 5 bytes */
    {4, 0x52, 1, 0, 0},                   /* GoPreempt, with one of the numbers that were left free */
    {4, 0x4e, 0, 0, 1},                   /* GoStart: G 1, with the other */
    {4, 0x61, 1, 1, 5},
    {13, 0x47, 3, 100, 0,                 /* GCStart: no stack */
         0x09, 3, 1, 0x0a, 3, 4, 0x08, 3, 5}, /* STWStart, STWDone, GCDone */
};
#define CUTS17 {3, 0x61, 1, 5}, {3, 0x52, 0, 0}, {3, 0x66, 0, 1}, {3, 0x61, 1, 5}
static const struct cuts cuts17 = {CUTS17, {10, 0x87, 100, 0, 0, 0x09, 1, 0x0a, 4, 0x08, 5}};
static const struct cuts cuts110 = {CUTS17, {11, 0x87, 100, 0, 0, 0x49, 1, 0, 0x0a, 4, 0x08, 5}};
static const struct cuts cuts121 = {CUTS17, {11, 0x87, 100, 0, 0, 0x49, 1, 1, 0x0a, 4, 0x08, 5}};
/* clang-format on */

/* As expected, where CPUS stands for the number of CPUs; that takes one byte. */
static void expect(const char *format, size_t *at_byte, const uint8_t *bytes, size_t size)
{
    uint8_t own[sizeof go15 + sizeof go17_tables];
    memcpy(own, bytes, size);
    uint8_t *cpus = memchr(own, CPUS, size);
    if (cpus)
        *cpus = (uint8_t)sysconf(_SC_NPROCESSORS_ONLN);
    scene_expect(format, at_byte, own, size);
}

static void expect_header(const char *format, size_t *at_byte)
{
    char header[PREFIX] = "";
    strcpy(header, gt_format_find(format)->header);
    scene_record(format);
    scene_expect(format, at_byte, header, sizeof header);
    CHECK_EQ(scene_size % PAGE, 0);
}

static uint64_t number(size_t *at_byte)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = scene_file[(*at_byte)++];
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
}

/* Until the end of the page: stacks with the id 0, which readers skip, of 1000 frames at most. */
static void expect_padding(const char *format, size_t *at_byte)
{
    size_t end = (*at_byte + PAGE - 1) / PAGE * PAGE;
    unsigned width = strcmp(format, "go1.5") == 0 ? 1 : 4; /* PC; function, file, line */
    while (*at_byte < end) {
        CHECK_EQ(scene_file[(*at_byte)++], 0xc3);
        uint64_t size = number(at_byte);
        size_t next = *at_byte + size;
        CHECK_EQ(number(at_byte), 0);
        uint64_t frames = number(at_byte);
        CHECK(frames <= 1000, "%s: %" PRIu64, format, frames);
        CHECK_EQ(next - *at_byte, frames * width);
        for (; *at_byte < next; (*at_byte)++)
            CHECK_EQ(scene_file[*at_byte], 0);
    }
    CHECK_EQ(*at_byte, end);
}

/* A stack that is none, with the numbers of struct gt_origin. */
static void expect_origin(const char *format, size_t *at_byte)
{
    struct gt_origin origin;
    uint64_t own[GT_ORIGIN_NUMBERS];
    CHECK_EQ(scene_file[(*at_byte)++], 0xc3);
    size_t size = number(at_byte), next = *at_byte + size;
    CHECK_EQ(number(at_byte), 0);
    CHECK(number(at_byte) >= 1, "%s: frames", format);
    CHECK_EQ(number(at_byte), GT_V1_ORIGIN);
    for (int i = 0; i < GT_ORIGIN_NUMBERS; i++)
        own[i] = number(at_byte);
    memcpy(&origin, own, sizeof origin);
    CHECK_EQ(origin.hardware, false);
    CHECK_EQ(origin.counter, 1000000000);
    CHECK_EQ(origin.units, 1);
    CHECK_EQ(origin.ticks, UINT64_C(1) << 32);
    CHECK_EQ(origin.mono_ns, 1000000000);
    CHECK(origin.pid && !origin.forker, "%s: pid", format);
    CHECK(strncmp((const char *)origin.program, "scene", sizeof origin.program) == 0, "%s: name",
          format);
    *at_byte = next;
}

static void check_15(void)
{
    size_t at_byte = 0;
    expect_header("go1.5", &at_byte);
    expect("go1.5", &at_byte, go15, sizeof go15);
    expect_origin("go1.5", &at_byte);
    expect("go1.5", &at_byte, go15_tables, sizeof go15_tables);
    expect_padding("go1.5", &at_byte);
    expect("go1.5", &at_byte, end15, sizeof end15);
    expect_padding("go1.5", &at_byte);
    CHECK_EQ(at_byte, scene_size);
}

static void check_17(const char *format, bool stops)
{
    size_t at_byte = 0;
    expect_header(format, &at_byte);
    expect(format, &at_byte, go17_start, sizeof go17_start);
    if (stops)
        scene_expect(format, &at_byte, preempted, sizeof preempted);
    else
        scene_expect(format, &at_byte, exits, sizeof exits);
    scene_expect(format, &at_byte, go17_end, sizeof go17_end);
    expect_origin(format, &at_byte);
    scene_expect(format, &at_byte, go17_tables, sizeof go17_tables);
    expect_padding(format, &at_byte);
    expect(format, &at_byte, end17, sizeof end17);
    expect_padding(format, &at_byte);
    CHECK_EQ(at_byte, scene_size);
}

enum { ALLOCS = 2850, FIRST_ALLOC = 200 };

static void allocate_and_collect(struct gt_writer *a)
{
    uint64_t t = FIRST_ALLOC;
    for (int i = 0; i < ALLOCS; i++, t++) {
        at(a, t);
        gt_ev_heap_alloc(a, t, 5);
        gt_writer_unpin(a);
    }
    t += 99;
    at(a, t + 10);
    gt_ev_gc(a, &(struct gt_collection){t, t + 10, {{t + 1, t + 5}}, 1});
    gt_writer_unpin(a);
}

static void expect_counted(const char *format, size_t *at_byte, const uint8_t *counted)
{
    scene_expect(format, at_byte, counted + 1, counted[0]);
}

/* How often the bytes come, one after the other. */
static unsigned repeated(size_t *at_byte, const uint8_t *counted)
{
    unsigned n = 0;
    for (; memcmp(scene_file + *at_byte, counted + 1, counted[0]) == 0; n++)
        *at_byte += counted[0];
    return n;
}

static size_t find(const char *format, const void *bytes, size_t size)
{
    uint8_t *p = memmem(scene_file, scene_size, bytes, size);
    CHECK(p, "%s", format);
    return (size_t)(p - scene_file);
}

/*
 * A page stops the goroutine that runs on its last event; the next one starts it there again. All
 * of a collection is in one page.
 */
static void check_cuts(const char *format, const struct cuts *cuts)
{
    uint64_t t = FIRST_ALLOC, last = FIRST_ALLOC + ALLOCS - 1;
    scene_epilogue = allocate_and_collect;
    scene_record(format);
    scene_epilogue = NULL;
    size_t at_byte = find(format, (const uint8_t[]){5, 0x61}, 2) + 1; /* the second one */
    t += repeated(&at_byte, cuts->alloc);
    expect_counted(format, &at_byte, cuts->stop);
    at_byte = PAGE;
    while (t < last) {
        scene_expect(format, &at_byte, (const uint8_t[]){0x41, 0}, 2); /* Batch: P 0 */
        if (cuts == &cuts15)
            number(&at_byte);
        CHECK_EQ(number(&at_byte), t);
        expect_counted(format, &at_byte, cuts->start);
        expect_counted(format, &at_byte, cuts->next);
        t += 1 + repeated(&at_byte, cuts->alloc);
        if (t == last)
            break;
        expect_counted(format, &at_byte, cuts->stop);
        expect_padding(format, &at_byte);
    }
    CHECK_EQ(find(format, cuts->gc + 1, cuts->gc[0]), at_byte);
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
    check_cuts("go1.5", &cuts15);
    check_cuts("go1.7", &cuts17);
    check_cuts("go1.10", &cuts110);
    check_cuts("go1.21", &cuts121);
    return 0;
}
