/* The tables and views of the database that `gotrace sql` makes. gotrace-sql(1) describes them. */
#pragma once

#include <stdbool.h>

/*
 * Count the version up with each change of a database's contents: older databases are then made
 * anew. Both numbers are in the database's header (PRAGMA application_id, user_version).
 */
enum { GT_SQL_APPLICATION = 0x676f7472 /* "gotr" */, GT_SQL_VERSION = 6 };

enum gt_sql_table {
#define GT_TABLE(name, columns, text) GT_SQL_##name,
#define GT_EVENTS GT_TABLE
#include "tables.def"
#undef GT_EVENTS
#undef GT_TABLE
    GT_SQL_TABLES
};

extern const struct gt_sql_definition {
    const char *name;
    bool own_id;      /* its first column is an id that SQLite assigns */
    int columns;      /* number of the other columns */
    const char *text; /* the statement that creates it */
} gt_sql_tables[GT_SQL_TABLES];

/* The statements that create all views. */
extern const char gt_sql_views[];
