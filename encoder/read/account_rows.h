/* The rows of accounts in a trace (encoder/format/usage.h), in order of their times. */
#pragma once

#include "bytes.h"

#include "encoder/base/queue.h"
#include "encoder/format/usage.h"

/*
 * Reduces `used` to a part of the time, in proportion. A thread that has slept keeps one sleep at
 * least.
 */
void gt_usage_cut(struct gt_usage *used, uint64_t part, uint64_t whole);

/* Reduces halts to a part of the time, in proportion. */
void gt_halts_cut(struct gt_halts *halts, uint64_t part, uint64_t whole);

/* The rows that were read and not yet reported. Zero-initialised. */
struct gt_account_rows {
    struct gt_account_row *row;
    struct gt_queue queue; /* of indices */
    size_t n, room;
};

/* Keeps the rows in a string or a stack, behind its mark. */
void gt_account_rows_keep(struct gt_account_rows *rows, struct gt_bytes bytes);

/* Whether there is a row from ts or earlier. */
static inline bool gt_account_rows_due(const struct gt_account_rows *rows, uint64_t ts)
{
    return rows->queue.n && rows->queue.at[0].key <= ts;
}

/* Removes and returns the earliest row from ts or earlier; NULL: there is none. */
const struct gt_account_row *gt_account_rows_next(struct gt_account_rows *rows, uint64_t ts);

void gt_account_rows_free(struct gt_account_rows *rows);
