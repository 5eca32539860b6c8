/*
 * Events of the source, step by step: each gt_tell_* function takes one, changes the states, and
 * writes the change to the new trace (rewriting_state.h). For rewriting.c. Times called ns are of
 * the source; times called ts are of the written trace.
 */
#pragma once

#include "rewriting_state.h"

/* The time, in the written trace, of a status that comes late: the part's beginning. */
uint64_t gt_first_ts(void);

/* Whether libgotrace wrote the source; and, for gt_reads_our_v1, in v1, where Ps are threads. */
bool gt_reads_our_v1(void);
bool gt_reads_ours(void);

/* The thread whose events stand in that stream. */
struct gt_m *gt_m_on(const struct gt_stream *stream);

/*
 * Steps whose meaning depends on the next event. In v1 a goroutine stops where a page ends, and
 * starts at the same time where the next page begins; a call's end and the goroutine's start are
 * two events. After a call, formats have other events that take no time. So gt_step_begin only
 * notes such a step; it is done, or dropped, when the next event is known.
 */
void gt_step_begin(struct gt_g_row *g, int step, const struct gt_happening *h, uint64_t ns);
void gt_step_finish(struct gt_g_row *g);

/* Whether g's noted step and the start that comes now cancel out, or are the end of a call. */
bool gt_step_completes(struct gt_g_row *g, const struct gt_m *m, uint64_t ns);

/* Does the noted stop of a v1 P in a call, which did not start again at once. */
void gt_step_finish_p(struct gt_m *m);

/* Creates g if its creation was put off: v1 gives the state of older goroutines only later. */
void gt_step_make(struct gt_m *m, struct gt_g_row *g);

/* Does all noted steps: time has gone on, and an event that changes them has the same time. */
void gt_steps_finish(void);

/* v1: gives the thread the P on which its event h stands. */
void gt_be_there(const struct gt_happening *h, uint64_t ns);
void gt_note_label(struct gt_m *m, struct gt_g_row *g, const struct gt_happening *h, uint64_t ts);

/* Take the events of the source, each function its types. */
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
/* When merging: takes the trace's heap out of the sum. m has a P. */
void gt_heap_leave(struct gt_m *m, uint64_t ts);
void gt_tell_gc(const struct gt_happening *h, uint64_t ts);
void gt_tell_stop_the_world(const struct gt_happening *h, uint64_t ts);
void gt_tell_ranges(const struct gt_happening *h, uint64_t ts);
void gt_tell_active(const struct gt_happening *h);
