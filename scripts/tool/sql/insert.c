/* See insert.h. */
#include "insert.h"

#include "sqlite.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that one statement inserts. That halves the time per row. */
enum { ROWS = 64 };

static struct {
    const char *path;
    sqlite3 *db;
    struct table {
        sqlite3_stmt *insert, *insert_one; /* insert: of ROWS rows */
        struct gt_sql_value *value;        /* of rows that are not written yet */
        size_t rows, columns;
    } table[GT_SQL_TABLES];
} made;

static _Noreturn void fail(void)
{
    gt_fail(GT_EXIT_FAILED, "%s: %s", made.path, gt_sqlite.errmsg(made.db));
}

static void execute(const char *text)
{
    if (gt_sqlite.exec(made.db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail();
}

/*
 * Sets up the database without a journal, and never waits for the disk: half a database is of no
 * use anyway.
 */
static void set_up(void)
{
    char text[256];
    snprintf(text, sizeof text,
             "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -16384; "
             "PRAGMA application_id = %d; PRAGMA user_version = %d",
             GT_SQL_APPLICATION, GT_SQL_VERSION);
    execute(text);
}

static sqlite3_stmt *prepare(const char *text)
{
    sqlite3_stmt *stmt;
    if (gt_sqlite.prepare_v2(made.db, text, -1, &stmt, NULL) != SQLITE_OK)
        fail();
    return stmt;
}

/*
 * Prints the columns that an INSERT lists. Without the id, SQLite need not look whether it is free.
 */
static void print_names(FILE *out, const struct gt_sql_definition *d)
{
    char text[64];
    snprintf(text, sizeof text, "SELECT * FROM %s", d->name);
    sqlite3_stmt *all = prepare(text);
    for (int i = d->own_id; i < d->own_id + d->columns; i++)
        fprintf(out, "%s%s", i > d->own_id ? ", " : "", gt_sqlite.column_name(all, i));
    gt_sqlite.finalize(all);
}

static sqlite3_stmt *prepare_insert(const struct gt_sql_definition *d, int rows)
{
    char *text;
    size_t size;
    FILE *out = gt_need(open_memstream(&text, &size));
    fprintf(out, "INSERT OR IGNORE INTO %s (", d->name);
    print_names(out, d);
    for (int row = 0; row < rows; row++) {
        for (int i = 0; i < d->columns; i++)
            fputs(i ? ", ?" : row ? "), (?" : ") VALUES (?", out);
    }
    fputc(')', out);
    fclose(out);
    sqlite3_stmt *stmt = prepare(text);
    free(text);
    return stmt;
}

static void begin_table(struct table *t, const struct gt_sql_definition *d)
{
    execute(d->text);
    t->insert = prepare_insert(d, ROWS);
    t->insert_one = prepare_insert(d, 1);
    t->columns = (size_t)d->columns;
    t->value = gt_need(malloc(ROWS * t->columns * sizeof *t->value));
}

void gt_sql_begin(const char *path)
{
    made.path = path;
    if (gt_sqlite.open_v2(path, &made.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        fail();
    set_up();
    execute("BEGIN");
    for (int i = 0; i < GT_SQL_TABLES; i++)
        begin_table(&made.table[i], &gt_sql_tables[i]);
}

static void bind(sqlite3_stmt *insert, int column, const struct gt_sql_value *value)
{
    if (value->null)
        gt_sqlite.bind_null(insert, column);
    else if (value->text)
        gt_sqlite.bind_text(insert, column, value->text, -1, SQLITE_STATIC);
    else
        gt_sqlite.bind_int64(insert, column, value->number);
}

static void write_rows(struct table *t, sqlite3_stmt *insert, size_t from, size_t n)
{
    for (size_t i = 0; i < n * t->columns; i++)
        bind(insert, (int)i + 1, &t->value[from * t->columns + i]);
    if (gt_sqlite.step(insert) != SQLITE_DONE)
        fail();
    gt_sqlite.reset(insert);
}

void gt_sql_add(enum gt_sql_table table, const struct gt_sql_value *values)
{
    struct table *t = &made.table[table];
    memcpy(&t->value[t->rows * t->columns], values, t->columns * sizeof *values);
    if (++t->rows < ROWS)
        return;
    write_rows(t, t->insert, 0, ROWS);
    t->rows = 0;
}

static void end_table(struct table *t)
{
    for (size_t i = 0; i < t->rows; i++)
        write_rows(t, t->insert_one, i, 1);
    gt_sqlite.finalize(t->insert);
    gt_sqlite.finalize(t->insert_one);
    free(t->value);
}

void gt_sql_end(void)
{
    for (int i = 0; i < GT_SQL_TABLES; i++)
        end_table(&made.table[i]);
    execute(gt_sql_views);
    execute("COMMIT");
    if (gt_sqlite.close(made.db) != SQLITE_OK)
        fail();
}
