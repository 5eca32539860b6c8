/*
 * The kernel's records of when a thread of this process got a CPU and lost it, and samples of what
 * it ran: perf_event_open(2). Each thread has an event, and the caller a ring in memory that the
 * kernel fills. Drain side only, with descriptors of its own.
 *
 * Any user may ask for switches where kernel.perf_event_paranoid is 2 or less. Samples are taken in
 * the kernel, too, or those of a thread that spends its time in system calls would be missing, and
 * it is the kernel where a CPU is lost; that takes CAP_PERFMON, or 1 or less.
 */
#ifndef GT_PERF_H
#define GT_PERF_H

#include "encoder/base/arch/arch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct gt_perf {
    int fd;
    uint8_t *pages; /* the first one is the ring's head */
    size_t bytes;   /* of the ring behind that, a power of two */
    uint64_t lost;  /* records, as far as note_lost was told */
};

/* A moment at which a thread got a CPU, or lost it. */
struct gt_perf_switch {
    uint64_t ns; /* by gt_perf_clock */
    uint32_t cpu;
    bool out;
    bool preempted; /* out, and it could have gone on */
    bool gap;       /* others are missing before this one */
};

/* What a thread ran, in the program; or from where it called the kernel. */
struct gt_perf_sample {
    uint64_t ns; /* by gt_perf_clock */
    uint32_t cpu;
    struct gt_arch_registers registers; /* pc 0: it is not known where */
    const void *stack;                  /* a copy, from registers.sp on; until fn returns */
    size_t bytes;
};

/* The clock of all records: one that maps to the trace's by a factor. */
clockid_t gt_perf_clock(void);

/* What to record. Either may be left out. */
struct gt_perf_wanted {
    bool switches;
    uint64_t period_ns;   /* of CPU time between two samples; 0: none */
    uint32_t every;       /* or: a sample at every such loss of the CPU; 0: none */
    uint32_t stack_bytes; /* to copy: a multiple of 8, less than 64 KiB with what is beside it */
};
#define GT_PERF_SAMPLE_BYTES 128 /* of a sample's record beside the stack, at most */

/*
 * Begins to record. The ring has `most` bytes or, where the limits of locked memory allow no more,
 * a half, and so on, but `least` (powers of two; a page is what it has in any case). 0 or -errno:
 * -EACCES or -EPERM: the kernel does not allow it; -ENOMEM: those limits.
 */
int gt_perf_open(struct gt_perf *perf, uint32_t tid, const struct gt_perf_wanted *wanted,
                 size_t most, size_t least);

/*
 * Tells what was recorded since, in its order. Also after the thread has ended. Returns how many
 * bytes of the ring that was.
 */
struct gt_perf_reader {
    void (*note_switch)(void *arg, const struct gt_perf_switch *s);
    void (*note_sample)(void *arg, const struct gt_perf_sample *s);
    void (*note_lost)(void *arg, uint64_t n); /* so many records are missing here, of any kind */
};
size_t gt_perf_read(struct gt_perf *perf, const struct gt_perf_reader *reader, void *arg);

/* Whether something was recorded since. */
bool gt_perf_has_more(const struct gt_perf *perf);

/* Returns how many records are missing that nobody was told of; kernels before 6.0 do not say. */
uint64_t gt_perf_close(struct gt_perf *perf);

#endif
