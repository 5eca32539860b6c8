/* See v1_lines.h. The table is that of Go 1.2: golang.org/s/go12symtab. */
#include "v1_lines.h"

#include "bytes.h"
#include "trace.h"

#include "encoder/base/sort.h"
#include "encoder/format/format.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC = (int)0xfffffffb, HEAD = 16, ENTRY = 16, NAME_AT = 8, FILE_AT = 24, LINE_AT = 28 };

static uint64_t number(const struct gt_bytes *b, uint64_t at, size_t size)
{
    uint64_t v = 0;
    if (at <= gt_bytes_left(b) && size <= gt_bytes_left(b) - at)
        memcpy(&v, b->p + at, size);
    return v;
}

static const char *text(const struct gt_bytes *b, uint64_t at)
{
    if (at >= gt_bytes_left(b) || !memchr(b->p + at, 0, gt_bytes_left(b) - at))
        return "";
    return (const char *)b->p + at;
}

void gt_v1_lines_open(struct gt_v1_lines *lines, const char *trace)
{
    char path[PATH_MAX];
    *lines = (struct gt_v1_lines){0};
    snprintf(path, sizeof path, "%s" GT_V1_ELF_SUFFIX, trace);
    gt_trace_map(&lines->table, path, sizeof(Elf64_Ehdr) + 1);
    if (!lines->table.p)
        return;
    lines->table.p += sizeof(Elf64_Ehdr); /* where our writer puts the table */
    if (number(&lines->table, 0, 4) == (uint32_t)MAGIC)
        lines->n = number(&lines->table, 8, 8);
}

/* The offset of the record of the last function that begins at or before pc; 0: none. */
static uint64_t record_of(const struct gt_v1_lines *lines, uint64_t pc)
{
    const struct gt_bytes *t = &lines->table;
    size_t before = GT_COUNT_FIRST(lines->n, i, number(t, HEAD + ENTRY * i, 8) <= pc);
    if (!before || pc >= number(t, HEAD + ENTRY * lines->n, 8)) /* entry n is the end */
        return 0;
    return number(t, HEAD + ENTRY * (before - 1) + 8, 8);
}

/* Reads a table of values by PC. Ours have one value: its difference from -1, in zigzag. */
static uint64_t value_at(const struct gt_v1_lines *lines, uint64_t at)
{
    struct gt_bytes b = lines->table;
    if (at >= gt_bytes_left(&b))
        return 0;
    b.p += at;
    return (gt_get_varint(&b) >> 1) - 1;
}

void gt_v1_lines_find(const struct gt_v1_lines *lines, struct gt_contents *contents,
                      struct gt_where *frame)
{
    char address[32];
    const struct gt_bytes *t = &lines->table;
    uint64_t record = lines->n ? record_of(lines, frame->pc) : 0;
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)frame->pc);
    const char *func = record ? text(t, number(t, record + NAME_AT, 4)) : address, *file = "";
    if (record) {
        uint64_t files = number(t, HEAD + ENTRY * lines->n + 8, 4);
        uint64_t which = value_at(lines, number(t, record + FILE_AT, 4));
        file = text(t, number(t, files + 4 * which, 4));
        frame->line = value_at(lines, number(t, record + LINE_AT, 4));
    }
    frame->func = gt_contents_name(contents, func, strlen(func));
    frame->file = gt_contents_name(contents, file, strlen(file));
}
