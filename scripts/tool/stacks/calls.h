/* The system calls that threads wait in, as rows of calls.def. */
#ifndef GT_CALLS_H
#define GT_CALLS_H

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

/* A timeout that is a number of milliseconds, not where a time stands. */
enum { GT_CALL_MS = 16 };

/* What becomes of a call when a debugger stops its thread, with no signal. */
enum gt_again {
    GT_AGAIN_WHOLE, /* the kernel makes it again, or goes on with it: as if nothing had been */
    GT_AGAIN_LEFT,  /* the same, if the kernel can write how much of the timeout is left */
    GT_AGAIN_FAILS, /* fails with EINTR, nothing done: it can be made again, with all its timeout */
    GT_AGAIN_ANEW,  /* the same of one call that has a timeout, which may begin anew then */
    GT_AGAIN_NOT    /* may have done a part, and then returns that; or nobody knows */
};

struct gt_call_row {
    long number;
    const char *name;
    enum gt_call_class class;
    int timeout; /* the argument that says when it ends by itself; -1: there is none */
    enum gt_again again;
};

/* NULL: not in the table. */
const struct gt_call_row *gt_call_row(long number);
const struct gt_call_row *gt_call_named(const char *name);

/*
 * The same of one call, by its arguments and descriptor: never LEFT, and FAILS only without a
 * timeout. tid: the thread that is in it.
 */
struct gt_still;
struct gt_call;
enum gt_again gt_call_again(const struct gt_still *still, int tid, const struct gt_call *call);

#endif
