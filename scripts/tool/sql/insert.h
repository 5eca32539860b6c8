/* Makes a database and inserts rows. On failure each function ends the program with a message. */
#pragma once

#include "schema.h"

#include <stdbool.h>
#include <stdint.h>

/* One value of a row. A text must stay valid until gt_sql_end. */
struct gt_sql_value {
    const char *text; /* or NULL */
    int64_t number;
    bool null;
};

static inline struct gt_sql_value gt_number(uint64_t n)
{
    return (struct gt_sql_value){.number = n > INT64_MAX ? INT64_MAX : (int64_t)n};
}

/* NULL if the number is not known: 0, or the largest. */
static inline struct gt_sql_value gt_known(uint64_t n)
{
    return (struct gt_sql_value){.number = (int64_t)n, .null = n == 0 || n == UINT64_MAX};
}

/* NULL if the text is. "" is a text. */
static inline struct gt_sql_value gt_text(const char *text)
{
    return (struct gt_sql_value){.text = text, .null = !text};
}

#define GT_SQL_NULL ((struct gt_sql_value){.null = true})

/* Makes the tables in the empty file at `path`. Only one database can be open at a time. */
void gt_sql_begin(const char *path);

/*
 * Inserts a row, perhaps later. values: one for each column, but for an id that SQLite assigns. A
 * row whose id exists already is ignored.
 */
void gt_sql_add(enum gt_sql_table table, const struct gt_sql_value *values);

/* Writes all rows, and makes the views. */
void gt_sql_end(void);
