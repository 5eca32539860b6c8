/* Finds libgotrace.so, for this command and for programs that it starts. */
#include "tool.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places of the library, from this program's directory: in the build tree, when installed, and
 * where somebody has copied both. */
static const char *const places[] = {"../libgotrace.so", "../lib/libgotrace.so",
                                     "../lib/*/libgotrace.so", "../lib64/libgotrace.so",
                                     "libgotrace.so"};

/* Quotes a path as a glob pattern that matches only that path. */
static void quote(char *pattern, const char *path)
{
    for (; *path; *pattern++ = *path++) {
        if (strchr("*?[\\", *path))
            *pattern++ = '\\';
    }
    *pattern = 0;
}

void gt_find_library(char path[PATH_MAX])
{
    char self[PATH_MAX], directory[2 * PATH_MAX], pattern[3 * PATH_MAX];
    const char *here = gt_own_directory(self);
    quote(directory, here);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found;
        snprintf(pattern, sizeof pattern, "%s/%s", directory, places[i]);
        bool any = glob(pattern, 0, NULL, &found) == 0 && realpath(found.gl_pathv[0], path);
        globfree(&found);
        if (any)
            return;
    }
    gt_fail(GT_EXIT_OURS, "there is no libgotrace.so in or beside %s", here);
}
