/* See account.h. */
#include "account.h"

#include "need.h"

#include <string.h>

static bool read_row(struct gt_bytes *bytes, struct gt_account_row *row)
{
    *row = (struct gt_account_row){.used.known = (unsigned)gt_get_varint(bytes)};
    row->g = gt_get_varint(bytes);
    row->at = gt_get_varint(bytes);
    row->length = gt_get_varint(bytes);
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        row->used.of[i] = row->used.known & 1u << i ? gt_get_varint(bytes) : 0;
    return row->used.known && row->used.known <= GT_KNOWN_ALL && !bytes->bad;
}

void gt_account_rows_keep(struct gt_account_rows *rows, struct gt_bytes bytes)
{
    struct gt_account_row row;
    while (gt_bytes_left(&bytes) && read_row(&bytes, &row)) {
        if (rows->n == rows->room) {
            rows->room = rows->room ? 2 * rows->room : 256;
            rows->row = gt_need(realloc(rows->row, rows->room * sizeof *rows->row));
        }
        rows->row[rows->n++] = row;
        rows->sorted = false;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct gt_account_row *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* What was told makes room for what follows. */
static void sort(struct gt_account_rows *rows)
{
    rows->n -= rows->first;
    memmove(rows->row, rows->row + rows->first, rows->n * sizeof *rows->row);
    rows->first = 0;
    qsort(rows->row, rows->n, sizeof *rows->row, by_time);
    rows->sorted = true;
}

const struct gt_account_row *gt_account_rows_next(struct gt_account_rows *rows, uint64_t ts)
{
    if (rows->first == rows->n)
        return NULL;
    if (!rows->sorted)
        sort(rows);
    return rows->row[rows->first].at <= ts ? &rows->row[rows->first++] : NULL;
}

void gt_account_rows_free(struct gt_account_rows *rows)
{
    free(rows->row);
    *rows = (struct gt_account_rows){0};
}
