/* A trace becomes a database: its events as rows, as they are read. */
#ifndef GT_SQL_IMPORT_H
#define GT_SQL_IMPORT_H

#include "encoder/read/trace.h"

#include <sys/stat.h>

/*
 * Reads the trace, which is open, and of which `st` was true before, into the file at `database`,
 * which is empty. Ends the program with a message where that fails. Takes memory for threads and
 * stacks, not for events.
 */
void gt_sql_import(struct gt_trace *trace, const struct stat *st, const char *database);

#endif
