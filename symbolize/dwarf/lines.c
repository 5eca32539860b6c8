/* See lines.h. */
#include "lines.h"

#include "units.h"

#include <string.h>

#define NO_FILE UINT32_MAX

void gt_line_reader_close(struct gt_line_reader *r)
{
    if (r->dwarf && r->dwarf != r->units->dwarf)
        r->units->dw->dwarf_end(r->dwarf);
    r->dwarf = NULL;
    r->rows = 0;
}

/* A new handle reads the header of every unit, which takes as long as to read some rows. */
static Dwarf *handle(struct gt_line_reader *r)
{
    enum { ROWS_MIN = 4000, ROWS_PER_UNIT = 16 };
    const struct gt_elfutils *dw = r->units->dw;
    if (r->rows > ROWS_MIN + ROWS_PER_UNIT * r->units->n)
        gt_line_reader_close(r);
    if (!r->dwarf && (r->dwarf = dw->dwarf_begin_elf(r->elf, DWARF_C_READ, NULL)))
        dw->dwarf_setalt(r->dwarf, r->alt);
    return r->dwarf;
}

static void copy_files(struct gt_lines *lines, const struct gt_units *units, Dwarf_Files *files,
                       size_t n)
{
    lines->file = n ? gt_arena_alloc(units->arena, n * sizeof *lines->file) : NULL;
    lines->files = lines->file ? n : 0;
    for (size_t i = 0; i < lines->files; i++) {
        const char *name = units->dw->dwarf_filesrc(files, i, NULL, NULL);
        lines->file[i] = name ? gt_arena_text(units->arena, name) : NULL;
    }
}

/* Appends a row, unless it repeats the row before. Rows come in the order of addresses. */
static size_t add(struct gt_line *rows, size_t n, struct gt_line row)
{
    bool gap = n == 0 || rows[n - 1].file == NO_FILE;
    /* Line 0 is code that belongs to no line: the row before goes on. */
    if (row.file != NO_FILE && row.line == 0 && !gap)
        return n;
    while (n && rows[n - 1].at == row.at)
        n--;
    if (n && rows[n - 1].file == row.file && rows[n - 1].line == row.line)
        return n;
    rows[n] = row;
    return n + 1;
}

static size_t collect(struct gt_line *rows, const struct gt_units *units, Dwarf_Lines *from,
                      size_t count)
{
    const struct gt_elfutils *dw = units->dw;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *l = dw->dwarf_onesrcline(from, i);
        Dwarf_Addr addr;
        Dwarf_Files *files;
        size_t file;
        int line = 0;
        bool end = true;
        if (dw->dwarf_lineaddr(l, &addr) != 0 || addr < units->base || addr > units->limit ||
            addr - units->base > UINT32_MAX || dw->dwarf_lineendsequence(l, &end) != 0)
            continue;
        struct gt_line row = {(uint32_t)(addr - units->base), 0, NO_FILE};
        if (!end && dw->dwarf_line_file(l, &files, &file) == 0 && dw->dwarf_lineno(l, &line) == 0) {
            row.file = (uint32_t)file;
            row.line = line > 0 ? (uint32_t)line : 0;
        }
        n = add(rows, n, row);
    }
    return n;
}

/* Unpacks the unit's line table. libdw reads no more than the length at its beginning. */
static bool need_table(const struct gt_units *units, Dwarf_Die *unit)
{
    const struct gt_elfutils *dw = units->dw;
    const struct gt_unpacking *table = &units->packed->section[GT_PACKED_LINE];
    Dwarf_Attribute attribute;
    Dwarf_Word at;
    uint64_t length = 0;
    if (!table->to)
        return !table->failed;
    if (dw->dwarf_formudata(dw->dwarf_attr(unit, DW_AT_stmt_list, &attribute), &at) != 0 ||
        at >= table->size || table->size - at < 12 ||
        !gt_packed_need(units->packed, GT_PACKED_LINE, at + 12))
        return false;
    memcpy(&length, table->to + at, 4);
    if (length == UINT32_MAX)
        memcpy(&length, table->to + at + 4, 8);
    length += 12;
    return length > 12 && gt_packed_need(units->packed, GT_PACKED_LINE,
                                         length < table->size - at ? at + length : SIZE_MAX);
}

void gt_lines_read(struct gt_lines *lines, struct gt_line_reader *r, Dwarf_Off unit_die)
{
    const struct gt_elfutils *dw = r->units->dw;
    Dwarf_Die cu;
    Dwarf_Lines *from;
    Dwarf_Files *files;
    size_t count, n;
    lines->read = true;
    lines->row = NULL;
    lines->n = 0;
    Dwarf *dwarf = handle(r);
    bool found = dwarf && dw->dwarf_offdie(dwarf, unit_die, &cu);
    if (r->rows == 0) /* the handle is new, and has read the headers of units */
        gt_units_touch(r->units, r->units->n * GT_TOUCHED_BY_PAGE);
    if (!found || !need_table(r->units, &cu))
        return;
    if (!lines->file && dw->dwarf_getsrcfiles(&cu, &files, &n) == 0)
        copy_files(lines, r->units, files, n);
    if (dw->dwarf_getsrclines(&cu, &from, &count) != 0 || count == 0)
        return;
    r->rows += count;
    struct gt_line *rows = gt_pages_alloc(count * sizeof *rows);
    if (!rows)
        return;
    n = collect(rows, r->units, from, count);
    lines->row = gt_arena_copy(r->units->walks, rows, n * sizeof *rows);
    lines->n = lines->row ? n : 0;
    gt_pages_free(rows, count * sizeof *rows);
}

const struct gt_line *gt_lines_find(const struct gt_lines *lines, uint64_t base, uint64_t addr)
{
    size_t n = gt_count_up_to(lines->row, lines->n, sizeof *lines->row, 4, addr - base);
    return n && lines->row[n - 1].file != NO_FILE ? &lines->row[n - 1] : NULL;
}

const char *gt_lines_file(const struct gt_lines *lines, uint64_t number)
{
    return number < lines->files ? lines->file[number] : NULL;
}
