/* Choosing and calibrating the trace clock. See clock.h. */
#include "clock.h"

#include "file.h"
#include "libc.h"

#include <stdlib.h>
#include <string.h>

/* A measurement over this time is right to better than a millionth. */
#define EXACT_NS 50000000
/*
 * The clocks' noise is some 50 ns, even over a generation as short as this. A process that has
 * lived for less waits here. Durations of longer generations are right to 0.1 %.
 */
#define RIGHT_NS 200000
#define ROUGH_NS 50000

struct gt_clock gt_clock;

/* Both clocks at the first gt_clock_init. A forked child inherits them, and measures no more. */
static uint64_t first_counter, first_mono;

static int by_syscall(clockid_t clock, struct timespec *ts)
{
    return (int)gt_syscall(SYS_clock_gettime, clock, ts);
}

int (*gt_clock_read)(clockid_t, struct timespec *) = by_syscall;

static uint64_t read_ns(clockid_t clock)
{
    struct timespec ts;
    gt_clock_read(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t read_host_ns(clockid_t clock)
{
    return read_ns(clock) - (uint64_t)gt_clock.namespace_ns;
}

uint64_t gt_clock_monotonic_raw(void)
{
    return read_host_ns(CLOCK_MONOTONIC);
}

/* The inode of the first time namespace: PROC_TIME_INIT_INO in Linux's include/linux/proc_ns.h. */
#define HOSTS_NAMESPACE "time:[4026531834]"

/* Reads which namespace the link of /proc is to; "": there are none. */
static void read_namespace(const char *link, char text[64])
{
    memset(text, 0, 64);
    gt_syscall(SYS_readlinkat, AT_FDCWD, link, text, 63);
}

/*
 * See time_namespaces(7). The file holds the offsets of the children's namespace, "monotonic", the
 * seconds and the nanoseconds first. A process that made that namespace is not in it itself.
 */
static int64_t read_namespace_ns(void)
{
    char text[128], *seconds = text + strlen("monotonic"), *ns;
    char own[64], childrens[64];
    read_namespace("/proc/self/ns/time", own);
    if (!*own || strcmp(own, HOSTS_NAMESPACE) == 0)
        return 0;
    read_namespace("/proc/self/ns/time_for_children", childrens);
    if (strcmp(own, childrens) != 0)
        return 0;
    gt_file_read_text("/proc/self/timens_offsets", text, sizeof text);
    if (strncmp(text, "monotonic", strlen("monotonic")) != 0)
        return 0;
    int64_t offset = strtoll(seconds, &ns, 10) * 1000000000;
    return offset + strtoll(ns, NULL, 10);
}

/* The counter and a clock of the host at one moment: of several bracketed readings the tightest. */
static void read_pair(clockid_t clock, uint64_t *counter, uint64_t *clock_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = gt_clock_counter();
        uint64_t ns = read_host_ns(clock);
        uint64_t after = gt_clock_counter();
        if (after - before < best) {
            best = after - before;
            *counter = before + (after - before) / 2;
            *clock_ns = ns;
        }
    }
}

void gt_clock_pair(clockid_t clock, uint64_t *units, uint64_t *ns)
{
    uint64_t counter = 0;
    read_pair(clock, &counter, ns);
    *units = gt_clock_units_of(counter);
}

uint64_t gt_clock_wall_at_0(void)
{
    uint64_t best = UINT64_MAX, wall = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t before = gt_clock_monotonic_raw();
        uint64_t now = read_ns(CLOCK_REALTIME);
        uint64_t took = gt_clock_monotonic_raw() - before;
        if (took < best) {
            best = took;
            wall = now - (before + took / 2);
        }
    }
    return wall;
}

void gt_clock_init(void)
{
    gt_clock = (struct gt_clock){.hardware = gt_arch_counter_usable(),
                                 .namespace_ns = read_namespace_ns()};
    if (gt_clock.hardware) {
        gt_clock.shift = GT_ARCH_COUNTER_SHIFT;
        read_pair(CLOCK_MONOTONIC, &gt_clock.base, &gt_clock.mono0);
        if (!first_mono) {
            first_counter = gt_clock.base;
            first_mono = gt_clock.mono0;
        }
    } else {
        gt_clock.base = gt_clock.mono0 = gt_clock_monotonic_raw();
    }
}

void gt_clock_use_ns(void)
{
    gt_clock = (struct gt_clock){.hz = 1000000000u, .rough_hz = 1000000000u};
}

/*
 * Units per second since the first gt_clock_init. Waits until that is at least least_ns ago;
 * *over_ns: how long ago it is.
 */
static uint64_t measure(uint64_t least_ns, uint64_t *over_ns)
{
    *over_ns = UINT64_MAX;
    if (!gt_clock.hardware)
        return 1000000000u;
    uint64_t counter = 0, mono = 0;
    do
        read_pair(CLOCK_MONOTONIC, &counter, &mono);
    while (mono - first_mono < least_ns);
    *over_ns = mono - first_mono;
    double ticks = (double)(counter - first_counter);
    double seconds = (double)*over_ns / 1e9;
    return (uint64_t)(ticks / seconds / (double)(1u << gt_clock.shift) + 0.5);
}

uint64_t gt_clock_hz(void)
{
    if (gt_clock.hz)
        return gt_clock.hz;
    uint64_t over_ns, hz = measure(RIGHT_NS, &over_ns);
    if (over_ns >= EXACT_NS)
        gt_clock.hz = hz;
    return hz;
}

uint64_t gt_clock_units(uint64_t ns)
{
    uint64_t hz = atomic_load_explicit(&gt_clock.rough_hz, memory_order_relaxed);
    if (!hz) {
        uint64_t over_ns;
        hz = measure(ROUGH_NS, &over_ns);
        atomic_store_explicit(&gt_clock.rough_hz, hz, memory_order_relaxed);
    }
    return ns * (hz / 1000) / 1000000;
}

struct gt_clock_snapshot gt_clock_snapshot(void)
{
    struct timespec wall;
    struct gt_clock_snapshot snapshot = {.units = gt_clock_now()};
    snapshot.mono_ns = gt_clock_monotonic_raw();
    gt_clock_read(CLOCK_REALTIME, &wall);
    snapshot.wall_s = (uint64_t)wall.tv_sec;
    snapshot.wall_ns = (uint64_t)wall.tv_nsec;
    return snapshot;
}
