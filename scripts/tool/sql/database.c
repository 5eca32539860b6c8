/* See database.h. */
#include "database.h"

#include "scripts/tool/report/frame_code.h"
#include "scripts/tool/report/reading.h"
#include "scripts/tool/replacement.h"
#include "import.h"
#include "schema.h"
#include "sqlite.h"
#include "scripts/tool/tool.h"

#include "encoder/read/need.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum state { ABSENT, FOREIGN, OLD, OURS };

/* The beginning of every SQLite database. */
struct header {
    char magic[16];
    uint8_t rest[84];
};
enum { USER_VERSION_AT = 60 - 16, APPLICATION_AT = 68 - 16 };

static uint32_t number_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/*
 * Looks only at the first bytes: the file may be anything, and must not change unless it is
 * gotrace's.
 */
static enum state look_at(const char *path)
{
    struct header h;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return ABSENT;
    if (fd < 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", path, strerror(errno));
    bool whole = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, &h, sizeof h) == sizeof h;
    close(fd);
    if (!whole || memcmp(h.magic, "SQLite format 3", sizeof h.magic) != 0 ||
        number_at(h.rest + APPLICATION_AT) != GT_SQL_APPLICATION)
        return FOREIGN;
    return number_at(h.rest + USER_VERSION_AT) == GT_SQL_VERSION ? OURS : OLD;
}

/*
 * Whether the database was made of a trace with this size and time, by the present rules for
 * places.
 */
static bool is_of(const char *path, const struct stat *st)
{
    sqlite3 *db;
    sqlite3_stmt *stmt = NULL;
    int64_t ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    bool same = gt_sqlite.open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                gt_sqlite.prepare_v2(db, "SELECT bytes, modified_ns, rules FROM trace", -1, &stmt,
                                     NULL) == SQLITE_OK &&
                gt_sqlite.step(stmt) == SQLITE_ROW &&
                gt_sqlite.column_int64(stmt, 0) == st->st_size &&
                gt_sqlite.column_int64(stmt, 1) == ns &&
                gt_sqlite.column_int64(stmt, 2) == (int64_t)gt_frames_fingerprint();
    gt_sqlite.finalize(stmt);
    gt_sqlite.close(db);
    return same;
}

static char *text_of(const char *a, const char *b)
{
    char *text;
    return asprintf(&text, "%s%s", a, b) < 0 ? gt_need(NULL) : text;
}

static bool is_writable(const char *path)
{
    char *directory = gt_need(strdup(path)), *slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = 0;
    bool writable = access(slash ? directory : ".", W_OK) == 0;
    free(directory);
    return writable;
}

static const char *make_temporary(struct gt_trace *trace, const struct stat *st, const char *path)
{
    const char *directory = getenv("TMPDIR");
    gt_say("%s: %s: the database is made in a temporary place, for this time", path,
           strerror(errno));
    gt_replacement_begin(text_of(directory && *directory ? directory : "/tmp", "/gotrace.db"));
    gt_sql_import(trace, st, gt_replacement_temporary());
    return gt_replacement_temporary();
}

const char *gt_sql_file(const char *of, const char *given)
{
    struct stat st;
    struct gt_trace trace;
    const char *path = given ? given : text_of(of, ".db");
    if (stat(of, &st) != 0)
        gt_fail(GT_EXIT_FAILED, "%s: %s", of, strerror(errno));
    enum state state = look_at(path);
    if (state == FOREIGN)
        gt_fail(GT_EXIT_FAILED,
                "%s is no database of gotrace's, and stays as it is: -o FILE "
                "for another place",
                path);
    if (state == OURS && is_of(path, &st))
        return path;
    gt_open_trace(&trace, of);
    if (!given && !is_writable(path))
        return make_temporary(&trace, &st, path);
    gt_replacement_begin(path);
    gt_sql_import(&trace, &st, gt_replacement_temporary());
    gt_replacement_finish(of);
    return path;
}
