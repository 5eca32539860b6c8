/* The outer structure of v1 files: a row of records, each of which has its length. */
#pragma once

#include "bytes.h"

#include "encoder/format/format.h"

struct gt_v1_record {
    uint8_t type;          /* enum gt_v1_type, or an unknown one */
    struct gt_bytes args;  /* of an event: the differences of number and time come first */
    struct gt_bytes value; /* a log's message; else empty */
    size_t size;           /* of the whole record */
};

/* An event with its time; in Go 1.5's format also with its number. */
struct gt_v1_entry {
    uint64_t ts, seq;
    struct gt_v1_record record; /* its args begin behind time and number */
};

/* Reads the next record; false: there is none, or it is incomplete. */
bool gt_v1_record_next(struct gt_bytes *bytes, const struct gt_format *format,
                       struct gt_v1_record *record);

/* Whether a record is not an event, but belongs to the tables or the file's structure. */
static inline bool gt_v1_is_table(uint8_t type)
{
    return type == GT_V1_BATCH || type == GT_V1_FREQUENCY || type == GT_V1_STACK ||
           type == GT_V1_STRING || type == GT_V1_TIMER_GOROUTINE;
}
