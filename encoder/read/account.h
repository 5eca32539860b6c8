/* The rows of accounts in a trace (encoder/usage.h), put in the order of their times. */
#ifndef GT_READ_ACCOUNT_H
#define GT_READ_ACCOUNT_H

#include "bytes.h"

#include "encoder/base/queue.h"
#include "encoder/usage.h"

struct gt_account_row {
    uint64_t g, at, length; /* at, length: of the trace's clock */
    struct gt_usage used;
    uint64_t cpus; /* so many Ps are CPUs; 0: none */
};

/* Leaves what was used in a part of the time, in equal measure. Who slept has slept then, too. */
void gt_usage_cut(struct gt_usage *used, uint64_t part, uint64_t whole);

/* Those that were read and not yet told. Zeros to begin with. */
struct gt_account_rows {
    struct gt_account_row *row;
    struct gt_queue queue; /* of indices */
    size_t n, room;
};

/* Keeps what stands in a string or a stack, behind its mark. */
void gt_account_rows_keep(struct gt_account_rows *rows, struct gt_bytes bytes);

/* Whether there is one that is not from after ts. */
static inline bool gt_account_rows_due(const struct gt_account_rows *rows, uint64_t ts)
{
    return rows->queue.n && rows->queue.at[0].key <= ts;
}

/* The earliest that is not from after ts, and is told with that; NULL: there is none. */
const struct gt_account_row *gt_account_rows_next(struct gt_account_rows *rows, uint64_t ts);

void gt_account_rows_free(struct gt_account_rows *rows);

#endif
