/* See lines.h. */
#include "lines.h"

#include "units.h"

#include <string.h>

#define NO_FILE UINT32_MAX
/* Some 10 MB; opening a handle costs a look at every unit's header, and a table for each. */
#define ROWS_PER_HANDLE 200000
#define ROWS_OF_MAIN 40000

void gt_line_reader_close(struct gt_line_reader *r)
{
    if (r->dwarf && r->dwarf != r->units->dwarf)
        r->units->dw->dwarf_end(r->dwarf);
    r->dwarf = NULL;
    r->rows = 0;
}

static Dwarf *handle(struct gt_line_reader *r)
{
    const struct gt_elfutils *dw = r->units->dw;
    if (r->rows > (r->dwarf == r->units->dwarf ? ROWS_OF_MAIN : ROWS_PER_HANDLE))
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

/* Appends a row, unless it says what the one before says. Rows come in the order of addresses. */
static size_t add(struct gt_line *rows, size_t n, struct gt_line row)
{
    bool gap = n == 0 || rows[n - 1].file == NO_FILE;
    /* Line 0 is code that belongs to no line: the one before stands. */
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

/* The unit's table, of which libdw reads no more than the length it begins with. */
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
    *lines = (struct gt_lines){.read = true};
    Dwarf *dwarf = handle(r);
    if (!dwarf || !dw->dwarf_offdie(dwarf, unit_die, &cu) || !need_table(r->units, &cu))
        return;
    if (dw->dwarf_getsrcfiles(&cu, &files, &n) == 0)
        copy_files(lines, r->units, files, n);
    if (dw->dwarf_getsrclines(&cu, &from, &count) != 0 || count == 0)
        return;
    r->rows += count;
    struct gt_line *rows = gt_pages_alloc(count * sizeof *rows);
    if (!rows)
        return;
    n = collect(rows, r->units, from, count);
    lines->row = gt_arena_copy(r->units->arena, rows, n * sizeof *rows);
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
