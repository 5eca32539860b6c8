/* See v1_part.h. Restores what v1.c, pages.c, tables.c and elf.c knew when they wrote the file. */
#include "v1_part.h"

#include "cpu_state.h"

#include "encoder/file/frames.h"
#include "encoder/cpu/merge.h"
#include "encoder/read/need.h"
#include "encoder/read/v1_lines.h"
#include "encoder/read/v1_records.h"
#include "encoder/thread/strings.h"
#include "encoder/file/v1/elf.h"
#include "encoder/file/v1/pages.h"
#include "encoder/file/v1/tables.h"
#include "encoder/file/v1/v1.h"

#include <stdlib.h>

/* Tables ------------------------------------------------------------------------------------- */

static struct gt_memo strings, stacks; /* the ids in the file */

/* Go 1.5: the old line table, and how many of its entries the file needs. */
static struct {
    struct gt_v1_lines lines;
    struct gt_contents contents;
    uint32_t n;
} table;

static void note(struct gt_memo *ids, uint64_t id)
{
    if (id)
        *(uint64_t *)gt_need(gt_memo_at(ids, id)) = 1;
}

static void keep_string(struct gt_bytes args)
{
    uint64_t id = gt_get_varint(&args);
    note(&strings, id);
    if (id <= UINT32_MAX)
        gt_strings_adopt_id((uint32_t)id);
}

/* Adds the next entry, out of the old table; if the table is gone, the name is the address. */
static void add_to_table(void)
{
    struct gt_named_frame *frame = gt_need(calloc(1, sizeof *frame));
    struct gt_where where = {.pc = gt_v1_elf_next_pc()};
    gt_v1_lines_find(&table.lines, &table.contents, &where);
    *frame = (struct gt_named_frame){.func = gt_need(gt_strings_intern(where.func)),
                                     .file = gt_need(gt_strings_intern(where.file)),
                                     .line = (uint32_t)where.line};
    gt_v1_elf_pc(frame);
    table.n++;
}

enum { ENTRIES_MAX = 1 << 22 };

/* Adds the entries that a stack's frames need. Frames are return addresses, so less one. */
static bool know_frames(uint64_t stack, struct gt_bytes frames, uint64_t n)
{
    for (uint64_t i = 0; i < n && gt_bytes_left(&frames); i++) {
        uint64_t pc = gt_get_varint(&frames) - 1;
        uint32_t entry = gt_v1_elf_entry(pc);
        if (!entry || entry > ENTRIES_MAX)
            return false;
        while (table.n < entry)
            add_to_table();
        if (i == 0 && stack <= GT_STACK_ID_MAX)
            gt_v1_elf_set_leaf((uint32_t)stack, gt_v1_elf_frame(pc));
    }
    return true;
}

static bool keep_stack(struct gt_bytes args)
{
    uint64_t id = gt_get_varint(&args), n = gt_get_varint(&args);
    note(&stacks, id);
    return !id || !gt_v1_global_order(gt_format) || know_frames(id, args, n);
}

/* Events ------------------------------------------------------------------------------------- */

/* The P whose batch it is, and the number and time of its last event. */
struct place {
    uint64_t p, seq, ts;
};

static struct place begin_batch(struct gt_bytes args)
{
    struct place place = {.p = gt_get_varint(&args)};
    place.seq = gt_v1_global_order(gt_format) ? gt_get_varint(&args) : 0;
    place.ts = gt_get_varint(&args);
    return place;
}

static bool tell_event(struct place *place, const struct gt_v1_record *record)
{
    struct gt_bytes args = record->args;
    const struct gt_v1_event *its = &gt_v1_events[record->type];
    place->seq += gt_v1_global_order(gt_format) ? gt_get_varint(&args) : 0;
    place->ts += gt_get_varint(&args);
    struct gt_v1_stands e = {record->type, (uint32_t)place->p, place->seq, place->ts, {0}};
    for (int i = 0; i < GT_V1_ARGS_MAX && its->arg[i]; i++)
        e.arg[i] = its->arg[i] <= gt_format->minor ? gt_get_varint(&args) : 0;
    if (!gt_v1_has(gt_format, record->type) || place->p > GT_MERGE_NO_P)
        return false;
    gt_need(gt_v1_stands(&e) ? place : NULL);
    gt_recovered_cpus_stand(&e);
    return true;
}

static bool tell(struct place *place, const struct gt_v1_record *record)
{
    switch (record->type) {
    case GT_V1_BATCH: *place = begin_batch(record->args); return true;
    case GT_V1_STRING: keep_string(record->args); return true;
    case GT_V1_STACK: return keep_stack(record->args);
    case GT_V1_FREQUENCY: return true;
    default: return record->type < GT_V1_EVENTS_END && tell_event(place, record);
    }
}

bool gt_v1_part_go_on(struct gt_bytes part, const char *path)
{
    struct place place = {0};
    struct gt_v1_record record;
    bool fits = gt_bytes_left(&part) % GT_V1_PAGE == 0;
    gt_v1_go_on();
    if (gt_v1_global_order(gt_format))
        gt_v1_lines_open(&table.lines, path);
    part.p += GT_HEADER_BYTES;
    while (fits && gt_bytes_left(&part))
        fits = gt_v1_record_next(&part, gt_format, &record) && tell(&place, &record);
    gt_v1_tables_go_on(&strings, &stacks);
    gt_memo_free(&strings);
    gt_memo_free(&stacks);
    return fits;
}
