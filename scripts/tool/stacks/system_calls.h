/* The system calls that threads wait in: the rows of system_calls.def. */
#pragma once

enum gt_call_class {
    GT_CALL_OTHER,
    GT_CALL_FUTEX,
    GT_CALL_FD, /* the first argument is a descriptor */
    GT_CALL_POLL,
    GT_CALL_SELECT,
    GT_CALL_EPOLL,
    GT_CALL_SLEEP,
    GT_CALL_CHILD,
    GT_CALL_SIGNAL
};

/* Marks a timeout that is a number of milliseconds, not a pointer to a time. */
enum { GT_CALL_MS = 16 };

/* What becomes of a call when its thread is stopped by a debugger, without a signal. */
enum gt_again {
    GT_AGAIN_WHOLE, /* the kernel repeats or continues it: as if nothing had happened */
    GT_AGAIN_LEFT,  /* WHOLE, if the kernel can write the rest of the timeout */
    GT_AGAIN_FAILS, /* EINTR, with nothing done: can be repeated, with all its timeout */
    GT_AGAIN_ANEW,  /* FAILS, but it has a timeout, which would begin anew */
    GT_AGAIN_NOT    /* may return a part that was done; or it is not known */
};

struct gt_call_row {
    long number;
    const char *name;
    enum gt_call_class class;
    int timeout; /* the argument with its timeout; -1: none */
    enum gt_again again;
};

/* NULL: the call is not in the table. */
const struct gt_call_row *gt_call_row(long number);
const struct gt_call_row *gt_call_named(const char *name);

/*
 * What becomes of one call, by its arguments and descriptor. It is never LEFT, and FAILS only
 * without a timeout. tid: the thread in the call.
 */
struct gt_still;
struct gt_system_call;
enum gt_again gt_call_again(const struct gt_still *still, int tid,
                            const struct gt_system_call *call);
