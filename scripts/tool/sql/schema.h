/* The tables and views of the database that `gotrace sql` makes of a trace; gotrace(1) tells of
 * them. */
#ifndef GT_SQL_SCHEMA_H
#define GT_SQL_SCHEMA_H

#include <stdbool.h>

/*
 * To be counted up with each change of what stands in a database: older ones are made anew. Both
 * stand in its header (PRAGMA application_id, user_version).
 */
enum { GT_SQL_APPLICATION = 0x676f7472 /* "gotr" */, GT_SQL_VERSION = 3 };

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
    bool own_id;      /* its first column is given by SQLite */
    int columns;      /* that are not */
    const char *text; /* the statement that makes it */
} gt_sql_tables[GT_SQL_TABLES];

/* Statements that make all views. */
extern const char gt_sql_views[];

#endif
