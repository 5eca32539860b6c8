/* A new database, and rows for its tables. Whatever fails ends the program with a message. */
#ifndef GT_SQL_INSERT_H
#define GT_SQL_INSERT_H

#include "schema.h"

#include <stdbool.h>
#include <stdint.h>

/* One value; a text stays where it is until the end. */
struct gt_sql_value {
    const char *text; /* or NULL */
    int64_t number;
    bool null;
};

static inline struct gt_sql_value gt_number(uint64_t n)
{
    return (struct gt_sql_value){.number = n > INT64_MAX ? INT64_MAX : (int64_t)n};
}

/* A number that is 0, or greater than any, where it is not known. */
static inline struct gt_sql_value gt_known(uint64_t n)
{
    return (struct gt_sql_value){.number = (int64_t)n, .null = n == 0 || n == UINT64_MAX};
}

/* "" is a text, too; NULL: none. */
static inline struct gt_sql_value gt_text(const char *text)
{
    return (struct gt_sql_value){.text = text, .null = !text};
}

#define GT_SQL_NULL ((struct gt_sql_value){.null = true})

/* Makes the tables in that file, which is empty. One database at a time. */
void gt_sql_begin(const char *path);

/*
 * A row: a value for each column that is given. It may be written later. One whose id is there
 * already is left out.
 */
void gt_sql_add(enum gt_sql_table table, const struct gt_sql_value *values);

/* Makes the views; all is in the file then. */
void gt_sql_end(void);

#endif
