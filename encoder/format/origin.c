/* See origin.h. Drain side, but for forks. */
#include "origin.h"

#include "encoder/base/clock.h"
#include "encoder/base/file.h"

#include <string.h>
#include <sys/utsname.h>

static struct {
    bool given;
    struct gt_origin its; /* if so */
    const char *program;
    uint64_t pid;          /* of the process that records here; else 0 */
    struct gt_maker maker; /* of a forked child */
} origin;

void gt_origin_open(const char *program)
{
    origin.program = program ? program : "";
    origin.pid = (uint64_t)gt_syscall(SYS_getpid);
}

void gt_origin_use(const struct gt_origin *o)
{
    origin.given = true;
    origin.its = o ? *o : (struct gt_origin){0};
}

void gt_origin_after_fork(void)
{
    origin.maker = (struct gt_maker){.process = origin.pid, .counter = gt_clock_counter()};
    origin.pid = 0;
}

void gt_origin_forked_by(uint32_t tid, uint64_t counter)
{
    origin.maker.thread = tid;
    origin.maker.counter = counter ? counter : origin.maker.counter;
}

struct gt_maker gt_origin_maker(void)
{
    return origin.maker;
}

void gt_origin_made_by(const struct gt_maker *maker)
{
    origin.maker = *maker;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t read_file(const char *path, char *text, size_t room)
{
    int fd = gt_file_open(path, 0);
    ssize_t n = fd < 0 ? 0 : gt_file_read(fd, text, room, 0);
    if (fd >= 0)
        gt_file_close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* Hexadecimal digits, with dashes in between. */
static void read_boot(uint64_t boot[2])
{
    enum { DIGITS = 16 };
    char text[64];
    size_t n = read_file("/proc/sys/kernel/random/boot_id", text, sizeof text);
    unsigned known = 0;
    for (size_t i = 0; i < n && known < 2 * DIGITS; i++) {
        int d = digit(text[i]);
        if (d < 0)
            continue;
        boot[known / DIGITS] = boot[known / DIGITS] << 4 | (unsigned)d;
        known++;
    }
}

static void read_host(uint64_t words[GT_ORIGIN_WORDS])
{
    struct utsname system;
    if (gt_syscall(SYS_uname, &system) == 0)
        memcpy(words, system.nodename, strnlen(system.nodename, GT_ORIGIN_WORDS * sizeof *words));
}

/* The time of day when the clock began. The clock's frequency may not be known yet. */
static void read_wall(struct gt_origin *o)
{
    enum { S = 1000000000 };
    uint64_t wall = gt_clock_wall_at_0() + o->mono_ns;
    o->wall_s = wall / S;
    o->wall_ns = wall % S;
}

struct gt_origin gt_origin_here(void)
{
    struct gt_origin o = {.hardware = gt_clock.hardware,
                          .counter = gt_clock.base,
                          .units = gt_clock_units_of(gt_clock.base),
                          .ticks = UINT64_C(1) << (32 + gt_clock.shift),
                          .mono_ns = gt_clock.mono0,
                          .pid = origin.pid,
                          .parent = origin.maker.process,
                          .forker = origin.maker.thread,
                          .forked = origin.maker.counter};
    size_t length = strlen(origin.program);
    memcpy(o.program, origin.program, length < sizeof o.program ? length : sizeof o.program);
    read_boot(o.boot);
    read_host(o.host);
    read_wall(&o);
    return o;
}

uint32_t gt_origin_text(uint8_t text[GT_ORIGIN_MAX])
{
    struct gt_origin o = origin.given ? origin.its : gt_origin_here();
    uint64_t numbers[GT_ORIGIN_NUMBERS];
    uint8_t *p = (uint8_t *)memcpy(text, GT_ORIGIN, sizeof GT_ORIGIN - 1) + sizeof GT_ORIGIN - 1;
    memcpy(numbers, &o, sizeof o);
    for (int i = 0; i < GT_ORIGIN_NUMBERS; i++)
        p = gt_varint_put(p, numbers[i]);
    return (uint32_t)(p - text);
}
