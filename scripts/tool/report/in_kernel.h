/*
 * Recorded calls in which a thread computed in the kernel, and did not wait: sends to a socket with
 * room, writes to a file's cache. An event tells only how long a call took. The kernel's account of
 * the thread tells how often it left its CPU to wait, and how long it had a CPU.
 */
#pragma once

#include "idle.h"

#include "encoder/read/threads.h"

/* Whether such a call may compute all the time: it is recorded as a call, and is no poll. */
bool gt_may_compute(enum gt_kind kind, const char *call);

/* The waits of each thread that surely put it to sleep. Zero-initialised. */
struct gt_sure_waits {
    struct gt_sure_wait {
        uint64_t count, polls_ns; /* polls_ns: of polls, which are recorded as calls */
    } * of;                       /* by the thread's number */
    size_t n;
};

/* Counts the span if it surely was a wait. */
void gt_sure_waits_add(struct gt_sure_waits *sure, const struct gt_span *span);

/* Whether these calls of the thread at one place, `count` in ns, computed in the kernel. */
bool gt_is_in_kernel(const struct gt_sure_waits *sure, const struct gt_thread_state *t,
                     enum gt_kind kind, const char *call, uint64_t count, uint64_t ns);

/* The line of a report that sums up the calls that its rows leave out. */
void gt_in_kernel_print(const struct gt_idle_sum *sum);
