/* libsqlite3, loaded on first use. Only `gotrace sql` needs it, so the command works without it. */
#pragma once

#include <sqlite3.h>

/* The functions of libsqlite3, without their prefix. */
extern struct gt_sqlite {
#define GT_SQLITE(name) __typeof__(&sqlite3_##name) name;
#include "sqlite.def"
#undef GT_SQLITE
} gt_sqlite;

/*
 * Loads the library; call it before any of its functions. Ends the program with a message if the
 * library is not installed.
 */
void gt_sqlite_load(void);
