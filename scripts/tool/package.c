/* See package.h. */
#include "package.h"

#include "ask.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *gt_package_of(const char *path)
{
    static const char usr[] = "/usr";
    static char line[512];
    char real[PATH_MAX];
    const char *at = real;
    if (!realpath(path, real))
        return "";
    bool moved = strncmp(real, usr, sizeof usr - 1) == 0; /* dpkg may know it as /bin/NAME */
    for (int i = 0; i <= moved; i++, at += sizeof usr - 1) {
        if (gt_ask((const char *const[]){"dpkg", "-S", at, NULL}, line, sizeof line) != 0)
            continue;
        line[strcspn(line, ":,")] = 0;
        return line;
    }
    if (gt_ask((const char *const[]){"rpm", "-qf", "--qf", "%{NAME}", real, NULL}, line,
               sizeof line) == 0)
        return line;
    return "";
}
