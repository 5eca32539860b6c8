/* A thread of another process is stopped, executes the stub, and is where it was. */
#ifndef GT_BORROW_H
#define GT_BORROW_H

#include "stub.h"

#include "scripts/tool/stacks/still.h"

enum gt_borrow {
    GT_BORROW_DONE,
    GT_BORROW_MOVED,   /* it was not where it was seen; nothing happened */
    GT_BORROW_CHANGED, /* it was, and had come by another way; nothing happened */
    GT_BORROW_REFUSED, /* the kernel's word, as errno; nothing happened */
    GT_BORROW_FAILED   /* no thread was made */
};

struct gt_borrowing {
    uint64_t pages;     /* see struct gt_stub_pages */
    uint64_t paused_ns; /* the thread, all in all */
    int error;
};

/* code: where there is room for it, and nobody is in it. functions: of the process. */
enum gt_borrow gt_borrow(const struct gt_still *still, const struct gt_task *task, int memory,
                         uint64_t code, const struct gt_stub_constants *functions,
                         struct gt_borrowing *out);

#endif
