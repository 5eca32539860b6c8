/* Statements to a database, and what they answer. */
#ifndef GT_SQL_PRINT_H
#define GT_SQL_PRINT_H

#include "sqlite.h"

#include <stdbool.h>

enum gt_sql_format { GT_SQL_COLUMNS, GT_SQL_JSON, GT_SQL_CSV };

/*
 * Executes all statements of the text, one after the other, and prints what each answers. false:
 * one of them failed, of which a line on standard error tells; those after it are not tried.
 */
bool gt_sql_answer(sqlite3 *db, const char *text, enum gt_sql_format format);

#endif
