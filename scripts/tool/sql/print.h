/* Executes SQL statements and prints their results. */
#pragma once

#include "sqlite.h"

#include <stdbool.h>

enum gt_sql_format { GT_SQL_COLUMNS, GT_SQL_JSON, GT_SQL_CSV };

/*
 * Executes the statements in the text one after the other and prints the result of each. If one
 * fails, it prints the error to standard error, skips the rest and returns false.
 */
bool gt_sql_answer(sqlite3 *db, const char *text, enum gt_sql_format format);
