/* Which part of a trace is rewritten, and how: see rewriting.h. */
#pragma once

#include "encoder/read/trace.h"

struct gt_holdings;
struct gt_wakings;

/* The rewriting of one trace: the states of its threads, Ps, goroutines (rewriting_state.h). */
struct gt_everybody;

struct gt_rewriting {
    const struct gt_trace *trace; /* open */
    uint64_t from, to;            /* ns since its beginning; to: UINT64_MAX: its end */
    /* The threads and goroutines to write, as keys; NULL: all. */
    const struct gt_memo *threads; /* the kernel's number plus 1 */
    const struct gt_memo *gs;
    struct gt_holdings *holdings; /* lock holds that become tasks; NULL: none do */
    /* When several traces are merged, whole: */
    bool together;
    bool no_halts;  /* leaves out how long the process was halted: another trace says it, too */
    uint64_t later; /* ns from the beginning of the written trace to this one's */
    const char *process; /* prefix of names of threads and locks; NULL: names stay as they are */
    bool same_boot;      /* all traces are of one boot: shared locks have one name in all */
    struct gt_wakings *wakings; /* its events that ended waits, and which */
};
