/* See print.h. */
#include "print.h"

#include "scripts/tool/json.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"
#include "encoder/base/printable.h"
#include "encoder/base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that are read ahead to choose the width of columns. An answer may have millions. */
enum { ROWS_LOOKED_AT = 1000 };

struct answer {
    sqlite3_stmt *stmt;
    int step; /* result of the last sqlite3_step; SQLITE_ROW: a row to print */
    int columns;
    int *width;
    bool *is_text; /* by column; numbers are aligned to the right */
    char **cell;   /* of the rows that were read ahead */
    size_t rows;
};

/* Columns ------------------------------------------------------------------------------------ */

/* A copy of the cell's text; "" for NULL. */
static char *cell_of(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)gt_sqlite.column_text(stmt, column);
    char *copy = gt_need(strdup(text ? text : ""));
    gt_make_printable(copy, strlen(copy));
    return copy;
}

static void print_cell(const struct answer *a, int column, const char *text)
{
    int pad = a->width[column] - (int)gt_utf8_length(text);
    bool last = column + 1 == a->columns;
    pad = pad > 0 ? pad : 0;
    if (a->is_text[column])
        printf("%s%*s", text, last ? 0 : pad, "");
    else
        printf("%*s%s", pad, "", text);
    fputs(last ? "\n" : "  ", stdout);
}

static void look_at_row(struct answer *a)
{
    for (int i = 0; i < a->columns; i++) {
        int type = gt_sqlite.column_type(a->stmt, i);
        char *text = cell_of(a->stmt, i);
        int width = (int)gt_utf8_length(text);
        a->is_text[i] |= type == SQLITE_TEXT || type == SQLITE_BLOB;
        a->width[i] = width > a->width[i] ? width : a->width[i];
        a->cell[a->rows * (size_t)a->columns + (size_t)i] = text;
    }
    a->rows++;
    a->step = gt_sqlite.step(a->stmt);
}

static void print_row(struct answer *a)
{
    for (int i = 0; i < a->columns; i++) {
        char *text = cell_of(a->stmt, i);
        print_cell(a, i, text);
        free(text);
    }
    a->step = gt_sqlite.step(a->stmt);
}

static void print_head(struct answer *a)
{
    for (int i = 0; i < a->columns; i++) {
        char *name = gt_need(strdup(gt_sqlite.column_name(a->stmt, i)));
        gt_make_printable(name, strlen(name));
        int width = (int)gt_utf8_length(name);
        a->width[i] = width > a->width[i] ? width : a->width[i];
        print_cell(a, i, name);
        free(name);
    }
}

static void print_columns(sqlite3_stmt *stmt, int step, int columns)
{
    size_t n = (size_t)columns;
    struct answer a = {.stmt = stmt,
                       .step = step,
                       .columns = columns,
                       .width = gt_need(calloc(n, sizeof(int))),
                       .is_text = gt_need(calloc(n, sizeof(bool))),
                       .cell = gt_need(calloc(n * ROWS_LOOKED_AT, sizeof(char *)))};
    while (a.step == SQLITE_ROW && a.rows < ROWS_LOOKED_AT)
        look_at_row(&a);
    print_head(&a);
    for (size_t i = 0; i < a.rows * n; i++) {
        print_cell(&a, (int)(i % n), a.cell[i]);
        free(a.cell[i]);
    }
    while (a.step == SQLITE_ROW)
        print_row(&a);
    free(a.cell);
    free(a.is_text);
    free(a.width);
}

/* JSON and CSV ------------------------------------------------------------------------------- */

/* Asks for the text first: that converts the value, and only then its size is right. */
static void print_json_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)gt_sqlite.column_text(stmt, column);
    gt_json_bytes(text ? text : "", (size_t)gt_sqlite.column_bytes(stmt, column));
}

static void print_json_value(sqlite3_stmt *stmt, int column)
{
    switch (gt_sqlite.column_type(stmt, column)) {
    case SQLITE_NULL: fputs("null", stdout); break;
    case SQLITE_INTEGER: printf("%lld", (long long)gt_sqlite.column_int64(stmt, column)); break;
    case SQLITE_FLOAT: gt_json_real(gt_sqlite.column_double(stmt, column)); break;
    default: print_json_text(stmt, column);
    }
}

static void print_json(sqlite3_stmt *stmt, int step, int columns)
{
    const char *before = "[";
    for (; step == SQLITE_ROW; step = gt_sqlite.step(stmt)) {
        fputs(before, stdout);
        for (int i = 0; i < columns; i++) {
            fputs(i ? "," : "{", stdout);
            gt_json_string(gt_sqlite.column_name(stmt, i));
            putchar(':');
            print_json_value(stmt, i);
        }
        putchar('}');
        before = ",\n";
    }
    puts(*before == '[' ? "[]" : "]");
}

static void print_csv_text(const char *text, bool more)
{
    bool plain = !text[strcspn(text, "\",\r\n")];
    if (!plain)
        putchar('"');
    for (const char *p = text; *p; p++)
        printf(*p == '"' ? "\"\"" : "%c", *p);
    if (!plain)
        putchar('"');
    putchar(more ? ',' : '\n');
}

static void print_csv(sqlite3_stmt *stmt, int step, int columns)
{
    for (int i = 0; i < columns; i++)
        print_csv_text(gt_sqlite.column_name(stmt, i), i + 1 < columns);
    for (; step == SQLITE_ROW; step = gt_sqlite.step(stmt)) {
        for (int i = 0; i < columns; i++) {
            const char *text = (const char *)gt_sqlite.column_text(stmt, i);
            print_csv_text(text ? text : "", i + 1 < columns);
        }
    }
}

/* Statements --------------------------------------------------------------------------------- */

static bool fail(sqlite3 *db)
{
    gt_say("sql: %s", gt_sqlite.errmsg(db));
    return false;
}

/* Prints nothing if the statement fails in its first step. */
static void print(sqlite3_stmt *stmt, enum gt_sql_format format)
{
    int columns = gt_sqlite.column_count(stmt), step = gt_sqlite.step(stmt);
    if (!columns || (step != SQLITE_ROW && step != SQLITE_DONE))
        return;
    switch (format) {
    case GT_SQL_COLUMNS: print_columns(stmt, step, columns); break;
    case GT_SQL_JSON: print_json(stmt, step, columns); break;
    case GT_SQL_CSV: print_csv(stmt, step, columns); break;
    }
}

bool gt_sql_answer(sqlite3 *db, const char *text, enum gt_sql_format format)
{
    while (*text) {
        sqlite3_stmt *stmt;
        if (gt_sqlite.prepare_v2(db, text, -1, &stmt, &text) != SQLITE_OK)
            return fail(db);
        if (!stmt)
            continue; /* blanks, or a comment */
        print(stmt, format);
        if (gt_sqlite.reset(stmt) != SQLITE_OK) { /* returns the error of the last step */
            gt_sqlite.finalize(stmt);
            return fail(db);
        }
        gt_sqlite.finalize(stmt);
    }
    return true;
}
