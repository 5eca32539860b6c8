/* Stops a thread of another process, has it execute the stub, and puts it back where it was. */
#pragma once

#include "stub.h"

#include "scripts/tool/stacks/still.h"

enum gt_borrow {
    GT_BORROW_DONE,
    GT_BORROW_MOVED,   /* the thread was not where it had been seen; nothing was done */
    GT_BORROW_CHANGED, /* the thread was there, but with other callers; nothing was done */
    GT_BORROW_REFUSED, /* the kernel refused, with `error` as its errno; nothing was done */
    GT_BORROW_FAILED   /* no new thread was made */
};

struct gt_borrowing {
    uint64_t pages;     /* see struct gt_stub_pages */
    uint64_t paused_ns; /* how long the thread was stopped, in all */
    int error;
};

/* code: an address with room for the stub, in use by no thread. functions: of the process. */
enum gt_borrow gt_borrow(const struct gt_still *still, const struct gt_still_thread *task,
                         int memory, uint64_t code, const struct gt_stub_constants *functions,
                         struct gt_borrowing *out);
