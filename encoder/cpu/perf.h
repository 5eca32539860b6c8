/*
 * The kernel's records (perf_event_open(2)): when a thread of this process got a CPU and lost it,
 * and samples of what it ran. Each thread has an event, and the caller a ring in memory that the
 * kernel fills. Drain side only, with descriptors of its own.
 *
 * Any user may ask for switches where kernel.perf_event_paranoid is 2 or less. Samples include
 * code of the kernel, or those of a thread that spends its time in system calls would be missing;
 * and a thread loses its CPU inside the kernel. Such samples take CAP_PERFMON, or
 * kernel.perf_event_paranoid at 1 or less.
 */
#pragma once

#include "encoder/base/arch/arch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct gt_perf {
    int fd;
    uint8_t *pages; /* the first one is the ring's head */
    size_t bytes;   /* of the ring behind the head, a power of two */
    uint64_t lost;  /* records that note_lost was called for */
};

/* A moment at which a thread got a CPU, or lost it. */
struct gt_perf_switch {
    uint64_t ns; /* by gt_perf_clock */
    uint32_t cpu;
    bool out;
    bool preempted; /* out, and the thread was still runnable */
    bool gap;       /* switches before this one are missing */
};

/* What a thread ran, in the program; or where it called the kernel. */
struct gt_perf_sample {
    uint64_t ns; /* by gt_perf_clock */
    uint32_t cpu;
    struct gt_arch_registers registers; /* pc 0: not known */
    const void *stack;                  /* a copy from registers.sp on, until note_sample returns */
    size_t bytes;
};

/* The clock of all records. A factor converts it to the trace's clock. */
clockid_t gt_perf_clock(void);

/* What to record. Either may be left out. */
struct gt_perf_wanted {
    bool switches;
    uint64_t period_ns;   /* of CPU time between two samples; 0: none */
    uint32_t every;       /* or: a sample at each n-th loss of the CPU; 0: none */
    uint32_t stack_bytes; /* to copy: a multiple of 8; the whole record is less than 64 KiB */
};
#define GT_PERF_SAMPLE_BYTES 128 /* the most that a sample's record has beside the stack */

/*
 * Begins to record. The ring has `most` bytes. If the limit of locked memory is too low for that,
 * it has half as many, and so on down to `least`. Both are powers of two; a ring has a page at
 * least. 0 or -errno: -EACCES or -EPERM: the kernel does not allow it; -ENOMEM: the limit of
 * locked memory.
 */
int gt_perf_open(struct gt_perf *perf, uint32_t tid, const struct gt_perf_wanted *wanted,
                 size_t most, size_t least);

/*
 * Calls the reader for each new record, in order. Works also after the thread has ended. Returns
 * how many bytes of the ring the records took.
 */
struct gt_perf_reader {
    void (*note_switch)(void *arg, const struct gt_perf_switch *s);
    void (*note_sample)(void *arg, const struct gt_perf_sample *s);
    void (*note_lost)(void *arg, uint64_t n); /* n records of any kind are missing here */
};
size_t gt_perf_read(struct gt_perf *perf, const struct gt_perf_reader *reader, void *arg);

/* Whether there are new records. */
bool gt_perf_has_more(const struct gt_perf *perf);

/*
 * Returns how many records are missing beyond those that note_lost was called for. Kernels before
 * 6.0 do not say.
 */
uint64_t gt_perf_close(struct gt_perf *perf);
