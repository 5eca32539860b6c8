/*
 * The trace clock: the invariant TSC (x86-64) or the virtual counter (aarch64), else
 * CLOCK_MONOTONIC. One unit is 16 ticks of the TSC (about 5 ns): finer than the cost of reading
 * it, and short in varints. The count starts near zero so that a small error of the measured
 * frequency cannot move late timestamps far.
 *
 * gt_clock_now may be called from any context after gt_clock_init.
 */
#pragma once

#include "encoder/base/arch/arch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct gt_clock {
    uint64_t base;             /* raw counter at init */
    unsigned shift;            /* raw ticks per unit, as a power of two */
    bool hardware;             /* counter register usable; else CLOCK_MONOTONIC */
    uint64_t mono0;            /* CLOCK_MONOTONIC ns of the host, read together with base */
    int64_t namespace_ns;      /* what CLOCK_MONOTONIC of our time namespace is ahead of that */
    uint64_t hz;               /* units a second; 0 until gt_clock_hz fixed it */
    _Atomic uint64_t rough_hz; /* measured earlier, less exactly; 0 until needed */
};

extern struct gt_clock gt_clock;

void gt_clock_init(void);

/* Instead of gt_clock_init, to write what was recorded before: a unit is a nanosecond. */
void gt_clock_use_ns(void);

/*
 * Units per second, measured over the time since gt_clock_init. The first call that comes late
 * enough to be exact fixes the value: all generations of a trace must use one frequency, or their
 * timelines drift apart. (The very first generation may be off by tens of nanoseconds, however long
 * it is.) Drain side only.
 */
uint64_t gt_clock_hz(void);

/* About how many units `ns` nanoseconds are, roughly measured; for thresholds. Any thread. */
uint64_t gt_clock_units(uint64_t ns);

/*
 * The kernel's own clock_gettime, in the vDSO where there is one. The program's clock_gettime may
 * be another preload's (libfaketime), and return other times or always the same. Tests replace it.
 */
extern int (*gt_clock_read)(clockid_t clock, struct timespec *ts);

/*
 * CLOCK_MONOTONIC of the host, in ns. The process's own CLOCK_MONOTONIC is not used: in a time
 * namespace a forked child's may differ from its parent's, and perf's times are the host's.
 */
uint64_t gt_clock_monotonic_raw(void);

/*
 * The clock of a thread's CPU time, as pthread_getcpuclockid returns it, and the thread of such a
 * clock: make_thread_cpuclock in the kernel's include/linux/posix-timers.h. tid: the kernel's.
 */
enum { GT_CLOCK_PER_THREAD = 4, GT_CLOCK_SCHEDULED = 2, GT_CLOCK_SHIFT = 3 };

static inline clockid_t gt_clock_of_thread(uint32_t tid)
{
    return (clockid_t)(~tid << GT_CLOCK_SHIFT | GT_CLOCK_PER_THREAD | GT_CLOCK_SCHEDULED);
}

static inline uint32_t gt_clock_thread(clockid_t clock)
{
    return ~(uint32_t)(clock >> GT_CLOCK_SHIFT);
}

/* The trace's clock, CLOCK_MONOTONIC and the time of day at one moment. */
struct gt_clock_snapshot {
    uint64_t units, mono_ns, wall_s, wall_ns;
};
struct gt_clock_snapshot gt_clock_snapshot(void);

static inline uint64_t gt_clock_counter(void)
{
    return gt_clock.hardware ? gt_arch_counter() : gt_clock_monotonic_raw();
}

/* The +1 keeps 0 free (readers take a timestamp of 0 for "unset"). */
static inline uint64_t gt_clock_units_of(uint64_t counter)
{
    return ((counter - gt_clock.base) >> gt_clock.shift) + 1;
}

/* Now, in trace units. */
static inline uint64_t gt_clock_now(void)
{
    return gt_clock_units_of(gt_clock_counter());
}

/* Reads the trace's clock and a clock of the host, CLOCK_MONOTONIC or _RAW, at one moment. */
void gt_clock_pair(clockid_t clock, uint64_t *units, uint64_t *ns);

/*
 * The time of day, in ns, when CLOCK_MONOTONIC of the host was 0, computed from both clocks as they
 * are now.
 */
uint64_t gt_clock_wall_at_0(void);
