/* Writes a trace into a database: its events become rows while they are read. */
#pragma once

#include "encoder/read/trace.h"

#include <sys/stat.h>

/*
 * Reads the open trace into the empty file at `database`. `st` is the state of the trace's file
 * before it was opened. Needs memory for threads and stacks, not for events. On failure ends the
 * program with a message.
 */
void gt_sql_import(struct gt_trace *trace, const struct stat *st, const char *database);
