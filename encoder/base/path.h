/* Paths of files, as texts. */
#pragma once

#include <string.h>

/* What stands behind the last slash: the file's name. What stands before that is its directory. */
static inline const char *gt_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
