/*
 * The kernel's records of when a thread of this process got a CPU and lost it: perf_event_open(2),
 * as any user may where kernel.perf_event_paranoid is 2 or less. Each thread has an event, and the
 * caller a ring in memory that the kernel fills. Drain side only, with descriptors of its own.
 */
#ifndef GT_PERF_H
#define GT_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct gt_perf {
    int fd;
    uint8_t *pages; /* the first one is the ring's head */
    size_t bytes;   /* of the ring behind that, a power of two */
};

/* A moment at which a thread got a CPU, or lost it. */
struct gt_perf_switch {
    uint64_t ns; /* by gt_perf_clock */
    uint32_t cpu;
    bool out;
    bool preempted; /* out, and it could have gone on */
    bool gap;       /* others are missing before this one */
};

/* The clock of all records: one that maps to the trace's by a factor. */
clockid_t gt_perf_clock(void);

/*
 * Begins to record. The ring has so many bytes, a power of two, or less where the limits of locked
 * memory allow no more. 0 or -errno: -EACCES or -EPERM: the kernel does not allow it; -ENOMEM:
 * those limits.
 */
int gt_perf_open(struct gt_perf *perf, uint32_t tid, size_t bytes);

/* Tells what was recorded since, in its order. Also after the thread has ended. */
typedef void gt_perf_fn(void *arg, const struct gt_perf_switch *s);
void gt_perf_read(struct gt_perf *perf, gt_perf_fn *fn, void *arg);

/* Whether something was recorded since. */
bool gt_perf_has_more(const struct gt_perf *perf);

void gt_perf_close(struct gt_perf *perf);

#endif
