/* See sql_insert.h. */
#include "sql_insert.h"

#include "sqlite.h"
#include "tool.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *path;
    sqlite3 *db;
    sqlite3_stmt *insert[GT_SQL_TABLES];
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

/* What half a transaction leaves is of no use: without a journal, and nothing waits for the disk.
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

static void prepare(enum gt_sql_table table)
{
    char text[256];
    const struct gt_sql_definition *d = &gt_sql_tables[table];
    int used = snprintf(text, sizeof text, "INSERT OR IGNORE INTO %s VALUES (?", d->name);
    for (int i = 1; i < d->columns; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ", ?");
    snprintf(text + used, sizeof text - (size_t)used, ")");
    if (gt_sqlite.prepare_v2(made.db, text, -1, &made.insert[table], NULL) != SQLITE_OK)
        fail();
}

void gt_sql_begin(const char *path)
{
    made.path = path;
    if (gt_sqlite.open_v2(path, &made.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK)
        fail();
    set_up();
    execute("BEGIN");
    for (int i = 0; i < GT_SQL_TABLES; i++) {
        execute(gt_sql_tables[i].text);
        prepare(i);
    }
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

void gt_sql_add(enum gt_sql_table table, const struct gt_sql_value *values)
{
    sqlite3_stmt *insert = made.insert[table];
    for (int i = 0; i < gt_sql_tables[table].columns; i++)
        bind(insert, i + 1, &values[i]);
    if (gt_sqlite.step(insert) != SQLITE_DONE)
        fail();
    gt_sqlite.reset(insert);
}

void gt_sql_end(void)
{
    for (int i = 0; i < GT_SQL_TABLES; i++)
        gt_sqlite.finalize(made.insert[i]);
    execute(gt_sql_views);
    execute("COMMIT");
    if (gt_sqlite.close(made.db) != SQLITE_OK)
        fail();
}
