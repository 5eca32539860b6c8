/* See sqlite.h. */
#include "sqlite.h"

#include "scripts/tool/tool.h"

#include <dlfcn.h>
#include <stddef.h>

struct gt_sqlite gt_sqlite;

static const struct {
    const char *name;
    void **slot;
} rows[] = {
#define GT_SQLITE(name) {"sqlite3_" #name, (void **)&gt_sqlite.name},
#include "sqlite.def"
#undef GT_SQLITE
};

void gt_sqlite_load(void)
{
    void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        gt_fail(GT_EXIT_FAILED, "sql needs libsqlite3.so.0, which is not here: install the package "
                                "libsqlite3-0 (Debian, Ubuntu) or sqlite-libs (Fedora)");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].slot = dlsym(lib, rows[i].name);
        if (!*rows[i].slot)
            gt_fail(GT_EXIT_FAILED, "libsqlite3.so.0 is too old: it has no %s", rows[i].name);
    }
}
