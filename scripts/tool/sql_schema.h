/* The tables and views of the database that `gotrace sql` makes of a trace; gotrace(1) tells of
 * them. */
#ifndef GT_SQL_SCHEMA_H
#define GT_SQL_SCHEMA_H

/*
 * To be counted up with each change of what stands in a database: older ones are made anew. Both
 * stand in its header (PRAGMA application_id, user_version).
 */
enum { GT_SQL_APPLICATION = 0x676f7472 /* "gotr" */, GT_SQL_VERSION = 1 };

enum gt_sql_table {
#define GT_TABLE(name, columns, text) GT_SQL_##name,
#include "sql_tables.def"
#undef GT_TABLE
    GT_SQL_TABLES
};

/* Its name, how many columns it has, and the statement that makes it. */
extern const struct gt_sql_definition {
    const char *name;
    int columns;
    const char *text;
} gt_sql_tables[GT_SQL_TABLES];

/* Statements that make all views. */
extern const char gt_sql_views[];

#endif
