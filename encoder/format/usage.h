/*
 * What a thread has used, by the kernel's count, and how a trace contains it. No event refers to
 * it. In v2 it stands in strings that begin with GT_ACCOUNT. In v1, whose first version has no
 * strings, it is the numbers of stacks with the id 0. The first number is GT_V1_ACCOUNT.
 *
 * These texts contain rows of LEB128 numbers:
 *
 * - Which of the numbers below are known (bits). 0: there are no more rows.
 * - The goroutine.
 * - The time at which the row ends, and the length of the row, in units of the trace's clock.
 * - The known numbers.
 *
 * Goroutine 0 is the tracer's own thread. Its row also says that all other threads were looked at
 * between its two times: a thread that has no row since has used nothing until then. With
 * GT_KNOWN_CPUS its row ends with how many CPUs there may be, and with GT_KNOWN_HALTS with the
 * three numbers of gt_halts.
 */
#pragma once

#include "encoder/base/varint.h"

#include <stdbool.h>
#include <stdint.h>

enum gt_usage_number {
    GT_USED_CPU,         /* ns */
    GT_USED_QUEUE,       /* ns in a run queue: runnable, no CPU */
    GT_USED_SLICES,      /* times that the thread got a CPU from there */
    GT_USED_VOLUNTARY,   /* times off the CPU to wait */
    GT_USED_INVOLUNTARY, /* times off the CPU for another thread */
    GT_USED_FAULTS,      /* times that a page had to be read */
    GT_USED_SYSTEM,      /* ns of GT_USED_CPU in the kernel, as it estimates */
    GT_USED_TOUCHED,     /* page faults without reading */
    GT_USED_NUMBERS,
};

/*
 * The bits of a row. A bit means the same for ever, as traces have it: a new number or fact takes
 * the bit of GT_KNOWN_END, which moves up.
 */
#define GT_KNOWN_CPU (1u << 0)
#define GT_KNOWN_QUEUE (1u << 1 | 1u << 2)
#define GT_KNOWN_SWITCHES (1u << 3 | 1u << 4 | 1u << 5 | GT_KNOWN_SYSTEM)
#define GT_KNOWN_NO_MORE (1u << 6) /* alone: its use from here on is unknown */
#define GT_KNOWN_RUNS (1u << 7)    /* at the end it ran, or was runnable */
#define GT_KNOWN_CPUS (1u << 8)    /* of goroutine 0: Ps below that are CPUs (sched.h) */
#define GT_KNOWN_SYSTEM (1u << 9 | 1u << 10)
#define GT_KNOWN_HALTS (1u << 11) /* of goroutine 0 */
#define GT_KNOWN_END (1u << 12)
#define GT_KNOWN_ALL (GT_KNOWN_CPU | GT_KNOWN_QUEUE | GT_KNOWN_SWITCHES)

static inline unsigned gt_used_bit(enum gt_usage_number number)
{
    static const uint8_t bits[] = {0, 1, 2, 3, 4, 5, 9, 10};
    _Static_assert(sizeof bits == GT_USED_NUMBERS, "each number has a bit");
    return 1u << bits[number];
}

/* How long something kept the process as a whole from running. */
struct gt_halts {
    /* how often the CPU quota of the process's cgroup, or of a cgroup above it, ran out */
    uint64_t throttled;
    uint64_t throttled_ns; /* how long threads were kept from CPUs, summed over CPUs */
    /* how long the drain thread did not run after its sleep had ended, without waiting for a CPU */
    uint64_t stopped_ns;
};

struct gt_usage {
    unsigned known; /* bits */
    uint64_t of[GT_USED_NUMBERS];
};

/* A row of the account. */
struct gt_account_row {
    uint64_t g, at, length; /* at, length: in units of the trace's clock */
    struct gt_usage used;
    uint64_t cpus; /* how many Ps are CPUs; 0: none */
    struct gt_halts halts;
};

/* Appends a row at p, which has room for GT_ACCOUNT_ROW_MAX bytes. Returns the end. */
enum { GT_ACCOUNT_ROW_MAX = (8 + GT_USED_NUMBERS) * GT_VARINT_MAX };
static inline uint8_t *gt_account_row_put(uint8_t *p, const struct gt_account_row *row)
{
    p = gt_varint_put(gt_varint_put(p, row->used.known), row->g);
    p = gt_varint_put(gt_varint_put(p, row->at), row->length);
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        p = row->used.known & gt_used_bit(i) ? gt_varint_put(p, row->used.of[i]) : p;
    p = row->used.known & GT_KNOWN_CPUS ? gt_varint_put(p, row->cpus) : p;
    if (row->used.known & GT_KNOWN_HALTS) {
        p = gt_varint_put(gt_varint_put(p, row->halts.throttled), row->halts.throttled_ns);
        p = gt_varint_put(p, row->halts.stopped_ns);
    }
    return p;
}

#define GT_ACCOUNT "gotrace-account "
#define GT_V1_ACCOUNT 0x746e756f636361u /* "account" */
