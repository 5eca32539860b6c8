/*
 * What a thread has used, by the kernel's count; and how that stands in a trace, where no event
 * refers to it: in v2 in strings that begin with GT_ACCOUNT, in v1, whose first version has none,
 * as the numbers of stacks with the id 0, the first of which is GT_V1_ACCOUNT.
 *
 * A row there is LEB128 numbers: which of the numbers below are known (bits), the goroutine, the
 * time, and how long before that the row begins, in units of the trace's clock; then those that are
 * known. 0: there are no more rows. Goroutine 0 is the tracer's own thread; its row
 * says, too, that all others were looked at between its two times: what is not mentioned since has
 * used nothing until then. With GT_KNOWN_CPUS it ends with how many CPUs there may be.
 */
#ifndef GT_USAGE_H
#define GT_USAGE_H

#include <stdbool.h>
#include <stdint.h>

enum gt_usage_number {
    GT_USED_CPU,         /* ns */
    GT_USED_QUEUE,       /* ns in a run queue */
    GT_USED_SLICES,      /* times from there to a CPU */
    GT_USED_VOLUNTARY,   /* times off the CPU to wait */
    GT_USED_INVOLUNTARY, /* times off the CPU for another thread */
    GT_USED_FAULTS,      /* times that a page had to be read */
    GT_USED_NUMBERS,
};

/* As bits, as they come together. */
#define GT_KNOWN_CPU (1u << GT_USED_CPU)
#define GT_KNOWN_QUEUE (1u << GT_USED_QUEUE | 1u << GT_USED_SLICES)
#define GT_KNOWN_SWITCHES \
    (1u << GT_USED_VOLUNTARY | 1u << GT_USED_INVOLUNTARY | 1u << GT_USED_FAULTS)
#define GT_KNOWN_ALL ((1u << GT_USED_NUMBERS) - 1)
#define GT_KNOWN_NO_MORE (1u << GT_USED_NUMBERS) /* alone: what comes after is not known */
#define GT_KNOWN_RUNS (2u << GT_USED_NUMBERS)    /* at the end it ran, or could have */
#define GT_KNOWN_CPUS                                                           \
    (4u << GT_USED_NUMBERS) /* of goroutine 0: Ps below that are CPUs (sched.h) \
                             */

struct gt_usage {
    unsigned known; /* bits */
    uint64_t of[GT_USED_NUMBERS];
};

#define GT_ACCOUNT "gotrace-account "
#define GT_V1_ACCOUNT 0x746e756f636361u /* "account" */

#endif
