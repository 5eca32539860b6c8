/* The outer structure of v1 files: a row of records, each of which says how long it is. */
#ifndef GT_V1_RECORDS_H
#define GT_V1_RECORDS_H

#include "bytes.h"

#include "encoder/format.h"

struct gt_v1_record {
    uint8_t type;          /* enum gt_v1_type, or one that is not in it */
    struct gt_bytes args;  /* of an event: beginning with its differences of number and time */
    struct gt_bytes value; /* what a log says; else nothing */
    size_t size;           /* of all of it */
};

/* An event, and its time; Go 1.5: and number. */
struct gt_v1_entry {
    uint64_t ts, seq;
    struct gt_v1_record record; /* whose args begin behind these */
};

/* The next record; false: there is none, or not all of it. */
bool gt_v1_record_next(struct gt_bytes *bytes, const struct gt_format *format,
                       struct gt_v1_record *record);

/* Whether it is no event, but belongs to the tables or the file's structure. */
static inline bool gt_v1_is_table(uint8_t type)
{
    return type == GT_V1_BATCH || type == GT_V1_FREQUENCY || type == GT_V1_STACK ||
           type == GT_V1_STRING || type == GT_V1_TIMER_GOROUTINE;
}

#endif
