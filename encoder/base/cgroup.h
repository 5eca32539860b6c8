/* Which cgroup a process is in. Pure functions on a text; callable from anywhere. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Whether a list of n bytes, separated by commas, has the word; "" is in the empty list. */
static inline bool gt_cgroup_lists(const char *list, size_t n, const char *word)
{
    size_t length = strlen(word), at = 0;
    for (;;) {
        size_t part = strcspn(list + at, ",:");
        if (part == length && strncmp(list + at, word, length) == 0)
            return true;
        at += part + 1;
        if (at > n)
            return false;
    }
}

/*
 * The path of a process's cgroup in the text of /proc/PID/cgroup (cgroups(7)): in version 1 that of
 * the controller, in the line "4:cpu,cpuacct:/path"; with "" that of version 2, in the line
 * "0::/path". *n: its length. NULL: there is none.
 */
static inline const char *gt_cgroup_path(const char *text, const char *controller, size_t *n)
{
    for (const char *line = text; *line; line += *line == '\n') {
        const char *end = line + strcspn(line, "\n"), *list = strchr(line, ':');
        const char *path = list && list < end ? strchr(list + 1, ':') : NULL;
        if (path && path < end &&
            gt_cgroup_lists(list + 1, (size_t)(path - list - 1), controller)) {
            *n = (size_t)(end - path - 1);
            return path + 1;
        }
        line = end;
    }
    return NULL;
}
