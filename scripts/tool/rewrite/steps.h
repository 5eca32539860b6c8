/*
 * What happens in the source, step by step: each changes what is known of everybody, and says so in
 * the trace that is written (rewriting_state.h). For rewriting.c. Times are ns of the source; those
 * called ts are of what is written.
 */
#ifndef GT_STEPS_H
#define GT_STEPS_H

#include "rewriting_state.h"

/* The time in what is written; and that since which is so what is told late. */
uint64_t gt_ts_of(uint64_t ns);
uint64_t gt_first_ts(void);

/* Whether the source is one of ours; and, too, of v1, where Ps are threads. */
bool gt_reads_our_v1(void);
bool gt_reads_ours(void);

/* The thread whose events stand there. */
struct gt_m *gt_m_on(const struct gt_stream *stream);

/*
 * v1 says that a goroutine stops where a page ends, and goes on at the same time where the next one
 * begins; and that a call ends, and, as another event, that the goroutine runs. After a call
 * formats have various things that take no time. So such a step is done when it is seen what
 * follows.
 */
void gt_step_begin(struct gt_g_row *g, int step, const struct gt_happening *h, uint64_t ns);
void gt_step_finish(struct gt_g_row *g);

/* Whether what was told before and the start that comes now are nothing, or the end of a call. */
bool gt_step_completes(struct gt_g_row *g, const struct gt_m *m, uint64_t ns);

/* A P of v1 that stopped for a moment in a call. */
void gt_step_finish_p(struct gt_m *m);

/* A goroutine of v1 that was there when the trace began: made when it is known what it does. */
void gt_step_make(struct gt_m *m, struct gt_g_row *g);

/* Time has gone on: what would have made something else of it had to be at the same time. */
void gt_steps_finish(void);

/* v1: a thread has the P on which its events stand. */
void gt_be_there(const struct gt_happening *h, uint64_t ns);
void gt_note_label(struct gt_m *m, struct gt_g_row *g, const char *label, uint64_t ts);

/* Each of its events. */
void gt_tell_proc_status(const struct gt_happening *h);
void gt_tell_proc_start(const struct gt_happening *h, uint64_t ns);
void gt_tell_proc_stop(const struct gt_happening *h, uint64_t ns);
void gt_tell_proc_steal(const struct gt_happening *h, uint64_t ts);
void gt_tell_create(const struct gt_happening *h, uint64_t ns);
void gt_tell_status(const struct gt_happening *h, uint64_t ts);
void gt_tell_start(const struct gt_happening *h, uint64_t ns);
void gt_tell_leave(const struct gt_happening *h, enum gt_g_state state, uint64_t ns);
void gt_tell_call_end(const struct gt_happening *h, uint64_t ns);
void gt_tell_unblock(const struct gt_happening *h, uint64_t ns);
void gt_tell_destroy(const struct gt_happening *h, uint64_t ns);
void gt_tell_create_syscall(const struct gt_happening *h, uint64_t ts);
void gt_tell_says(const struct gt_happening *h, uint64_t ns);
void gt_tell_procs(const struct gt_happening *h, uint64_t ts);
void gt_tell_heap(const struct gt_happening *h, uint64_t ts);
/* Of one of several: what it had is not part of the sum any more. m: has a P. */
void gt_heap_leave(struct gt_m *m, uint64_t ts);
void gt_tell_gc(const struct gt_happening *h, uint64_t ts);
void gt_tell_stop_the_world(const struct gt_happening *h, uint64_t ts);
void gt_tell_ranges(const struct gt_happening *h, uint64_t ts);
void gt_tell_active(const struct gt_happening *h);

#endif
