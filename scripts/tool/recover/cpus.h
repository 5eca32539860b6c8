/*
 * Where threads and Ps were when a trace with CPU state (GOTRACE_SCHED) was whole: for what goes on
 * there without the kernel's records, which are gone with the process.
 */
#ifndef GT_RECOVER_CPUS_H
#define GT_RECOVER_CPUS_H

#include "encoder/buffers.h"
#include "encoder/read/bytes.h"
#include "encoder/v1/v1.h"

/* wanted: the trace has CPU state; else nothing else is done. */
void gt_recovered_cpus_open(bool wanted);

/* What stands there: the last whole generation of a v2 file; or one that a flight recorder kept. */
void gt_recovered_cpus_of(struct gt_bytes generation);
void gt_recovered_cpus_of_kept(const struct gt_kept *kept);

/* An event of a v1 file; each P's in their order. */
void gt_recovered_cpus_stand(const struct gt_v1_stands *event);

/*
 * Generation gen goes on from there: *packed and *plain are other lists then, in which a thread has
 * a CPU unless it is seen waiting. It is followed itself. false: its events contradict that.
 */
bool gt_recovered_cpus_complete(uint32_t gen, struct gt_buf **packed, struct gt_buf **plain);

#endif
