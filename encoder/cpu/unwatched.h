/*
 * The beginnings of threads that were not watched yet (watch.h): the kernel recorded no switches
 * there, but a thread's CPU clock tells how long it had a CPU. The time by which a thread ran
 * longer by its events becomes absences for merge.h. Where each absence lies is inferred. A thread
 * loses its CPU for milliseconds, between two events that are far apart, so the longest runs are
 * shortened first. Drain side only.
 */
#pragma once

#include "merge.h"

/*
 * Thread m was born at `from` and not watched until `until` (trace time). It had a CPU for cpu_ns
 * of that time. gen: the generation under way.
 */
void gt_unwatched_note(uint32_t gen, uint32_t m, uint64_t from, uint64_t until, uint64_t cpu_ns);

/* When thread m left the generation; a later time: it has ended. */
typedef uint64_t gt_stream_end_fn(uint32_t m);

/*
 * Generation gen is over and has these events: finds the absences in the stretches that were
 * noted. `watched`: the absences that the kernel recorded, which are not changed.
 */
void gt_unwatched_infer(uint32_t gen, const struct gt_buf *packed, const struct gt_buf *plain,
                        gt_absences_fn *watched, gt_stream_end_fn *end_of);

/* A thread's absences in that generation, both inferred and recorded. */
const struct gt_absence *gt_unwatched_absences(uint32_t m, size_t *n);

/* A recording begins: forgets what was noted. */
void gt_unwatched_forget(void);
void gt_unwatched_after_fork(void);
