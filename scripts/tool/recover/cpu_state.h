/*
 * Recovers the CPU state (GOTRACE_SCHED) of the last, unfinished generations. The kernel's records
 * for them are gone with the process, so the state goes on from where the trace was whole.
 */
#pragma once

#include "encoder/thread/buffers.h"
#include "encoder/read/bytes.h"
#include "encoder/file/v1/v1.h"

/* wanted: the trace has CPU state. If not, the functions below do nothing. */
void gt_recovered_cpus_open(bool wanted);

/* Take the last whole generation of a v2 file, or one that a flight recorder kept. */
void gt_recovered_cpus_of(struct gt_bytes generation);
void gt_recovered_cpus_of_kept(const struct gt_kept *kept);

/* Takes an event of a v1 file; the events of a P come in order. */
void gt_recovered_cpus_stand(const struct gt_v1_stands *event);

/*
 * Adds CPU state to generation gen: sets *packed and *plain to new lists, in which a thread has a
 * CPU unless its events show that it waits. The next generation goes on from this one. false: the
 * events contradict the state before.
 */
bool gt_recovered_cpus_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain);
