/*
 * libsqlite3, loaded when it is first needed: `gotrace sql` alone does, and the command works where
 * it is not installed.
 */
#ifndef GT_SQLITE_H
#define GT_SQLITE_H

#include <sqlite3.h>

/* Its functions, without their prefix. */
extern struct gt_sqlite {
#define GT_SQLITE(name) __typeof__(&sqlite3_##name) name;
#include "sqlite.def"
#undef GT_SQLITE
} gt_sqlite;

/* Before any of them is called. Ends the program with a message where the library is not. */
void gt_sqlite_load(void);

#endif
