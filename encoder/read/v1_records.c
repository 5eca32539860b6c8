/* See v1_records.h. */
#include "v1_records.h"

/*
 * The upper two bits of the first byte count the arguments after the time (Go 1.5: after number
 * and time). 3 stands for three or more, and the length follows. A string has a form of its own,
 * and follows a UserLog.
 */
bool gt_v1_record_next(struct gt_bytes *bytes, const struct gt_format *format,
                       struct gt_v1_record *record)
{
    const uint8_t *start = bytes->p;
    uint8_t first = gt_get_byte(bytes);
    unsigned count = first >> 6;
    record->type = first & 0x3f;
    record->args = *bytes;
    if (!first) { /* a hole in the file, perhaps of gigabytes */
        while (bytes->p < bytes->end && !*bytes->p)
            bytes->p++;
    } else if (record->type == GT_V1_STRING) {
        gt_get_varint(bytes);
        gt_get_part(bytes, gt_get_varint(bytes));
    } else if (count == 3) {
        record->args = gt_get_part(bytes, gt_get_varint(bytes));
    } else {
        for (unsigned n = count + 1 + gt_v1_global_order(format); n; n--)
            gt_get_varint(bytes);
    }
    record->value = (struct gt_bytes){.p = NULL};
    if (record->type == GT_V1_USER_LOG)
        record->value = gt_get_part(bytes, gt_get_varint(bytes));
    record->args.end = record->type == GT_V1_STRING || count < 3 ? bytes->p : record->args.end;
    record->size = (size_t)(bytes->p - start);
    return !bytes->bad;
}
