/*
 * Writing what was read anew: the events of a trace, or of a part of its time or threads, as a
 * recording of that would have them, in any format. Between the reader, which tells what happened
 * to whom in causal order, and writing.h stands what everybody's state is: a generation begins with
 * that, and so does a part that begins in the middle.
 *
 * A part of a trace of ours begins with its threads running for no time, so that each can say again
 * what readers would know: where it began, its name, open tasks and regions, what lock it waits
 * for; and goes on to wait or call then, for the reason and at the stack that it really has. Of a
 * trace of Go's own, whose goroutines have no threads of their own, statuses must do.
 */
#ifndef GT_REWRITING_H
#define GT_REWRITING_H

#include "encoder/read/trace.h"

struct gt_holdings;
struct gt_wakings;

/* The rewriting of one trace: what is known of everybody in it (rewriting_state.h). */
struct gt_everybody;

struct gt_rewriting {
    const struct gt_trace *trace; /* open */
    uint64_t from, to;            /* ns since its beginning; to: UINT64_MAX: its end */
    /* Those that are wanted, as keys; or NULL: all. */
    const struct gt_memo *threads; /* as the kernel numbers them, plus 1 */
    const struct gt_memo *gs;
    struct gt_holdings *holdings; /* that become tasks; NULL: none do */
    /* Of one of several that are put together, all of it: */
    bool together;
    uint64_t later;      /* ns from the beginning of what is written to its own */
    const char *process; /* what names of threads and locks begin with; NULL: they have that */
    bool same_boot;      /* as all others: what processes share they call the same */
    struct gt_wakings *wakings; /* of its logs, whose waits they ended */
};

/* gt_writing_begin has been called, with the time `from` + 1. What is told next is of this one. */
struct gt_everybody *gt_rewriting_begin(const struct gt_rewriting *r);

/* Or of that one. */
void gt_rewriting_use(struct gt_everybody *all);

/* What is told when the trace is read. */
extern const struct gt_audience gt_rewriting_audience;

/* Together: at ns of what is written a generation ends for all; the next one begins for it. */
void gt_rewriting_pause(void);
void gt_rewriting_go_on(uint64_t ns);

/* Together: its trace is over, and may go. Those who are left end then, at ns of their own. */
void gt_rewriting_leave(uint64_t ns, bool whole);

/* Alone: all is told, or enough; it ends at that time, ns. whole: nothing is missing. */
void gt_rewriting_end(uint64_t end, bool whole);

#endif
