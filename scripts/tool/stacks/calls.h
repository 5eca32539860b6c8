/* The system calls that threads wait in, as rows of calls.def. */
#ifndef GT_CALLS_H
#define GT_CALLS_H

#include <stdbool.h>

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

struct gt_call_row {
    long number;
    const char *name;
    enum gt_call_class class;
    int timeout; /* the argument that says when it ends by itself; -1: there is none */
    bool
        interrupted; /* a thread that only stops finds it failed with EINTR; it can be made again */
};

/* NULL: not in the table. */
const struct gt_call_row *gt_call_row(long number);
const struct gt_call_row *gt_call_named(const char *name);

#endif
