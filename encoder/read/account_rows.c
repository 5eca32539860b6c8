/* See account_rows.h. */
#include "account_rows.h"

#include "need.h"

#include <stdlib.h>

static bool read_row(struct gt_bytes *bytes, struct gt_account_row *row)
{
    *row = (struct gt_account_row){.used.known = (unsigned)gt_get_varint(bytes)};
    row->g = gt_get_varint(bytes);
    row->at = gt_get_varint(bytes);
    row->length = gt_get_varint(bytes);
    for (int i = 0; i < GT_USED_NUMBERS; i++)
        row->used.of[i] = row->used.known & gt_used_bit(i) ? gt_get_varint(bytes) : 0;
    row->cpus = row->used.known & GT_KNOWN_CPUS ? gt_get_varint(bytes) : 0;
    if (row->used.known & GT_KNOWN_HALTS) {
        row->halts.throttled = gt_get_varint(bytes);
        row->halts.throttled_ns = gt_get_varint(bytes);
        row->halts.stopped_ns = gt_get_varint(bytes);
    }
    return row->used.known && row->used.known < GT_KNOWN_END && !bytes->bad;
}

static void make_room(struct gt_account_rows *rows)
{
    if (!rows->queue.n)
        rows->n = 0;
    if (rows->n < rows->room)
        return;
    rows->room = rows->room ? 2 * rows->room : 256;
    rows->row = gt_need(realloc(rows->row, rows->room * sizeof *rows->row));
    rows->queue.at = gt_need(realloc(rows->queue.at, (rows->room + 1) * sizeof *rows->queue.at));
}

void gt_account_rows_keep(struct gt_account_rows *rows, struct gt_bytes bytes)
{
    struct gt_account_row row;
    while (gt_bytes_left(&bytes) && read_row(&bytes, &row)) {
        make_room(rows);
        gt_queue_push(&rows->queue, (struct gt_pair){row.at, rows->n});
        rows->row[rows->n++] = row;
    }
}

const struct gt_account_row *gt_account_rows_next(struct gt_account_rows *rows, uint64_t ts)
{
    return gt_account_rows_due(rows, ts) ? &rows->row[gt_queue_pop(&rows->queue)] : NULL;
}

void gt_account_rows_free(struct gt_account_rows *rows)
{
    free(rows->row);
    free(rows->queue.at);
    *rows = (struct gt_account_rows){0};
}

void gt_halts_cut(struct gt_halts *halts, uint64_t part, uint64_t whole)
{
    uint64_t *const of[] = {&halts->throttled, &halts->throttled_ns, &halts->stopped_ns};
    for (size_t i = 0; i < sizeof of / sizeof *of && part < whole; i++)
        *of[i] = (uint64_t)((double)*of[i] * ((double)part / (double)whole) + 0.5);
}

void gt_usage_cut(struct gt_usage *used, uint64_t part, uint64_t whole)
{
    bool slept = used->of[GT_USED_VOLUNTARY] != 0;
    for (int i = 0; i < GT_USED_NUMBERS && part < whole; i++)
        used->of[i] = (uint64_t)((double)used->of[i] * ((double)part / (double)whole) + 0.5);
    if (slept && !used->of[GT_USED_VOLUNTARY])
        used->of[GT_USED_VOLUNTARY] = 1; /* 0 would mean that the thread did not sleep */
}
