/* See package.h. */
#include "package.h"

#include "ask.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Packages -------------------------------------------------------------------------------------*/

enum { NAME = 512 };

/* dpkg's answer begins with lines about diversions of the file. */
static bool ask_dpkg(const char *path, char name[NAME])
{
    static const char script[] = "dpkg -S \"$1\" | grep -v '^\\(local \\)\\?diversion '";
    if (gt_ask((const char *const[]){"sh", "-c", script, "sh", path, NULL}, name, NAME) != 0)
        return false;
    name[strcspn(name, ":,")] = 0;
    return *name;
}

static bool ask_rpm(const char *path, char name[NAME])
{
    return gt_ask((const char *const[]){"rpm", "-qf", "--qf", "%{NAME}\\n", path, NULL}, name,
                  NAME) == 0;
}

/* Which package the file is of; debian: whether dpkg knows it. */
static bool find_package(const char *path, char name[NAME], bool *debian)
{
    static const char usr[] = "/usr";
    char real[PATH_MAX];
    *name = 0;
    if (!realpath(path, real))
        return false;
    bool moved = strncmp(real, usr, sizeof usr - 1) == 0; /* dpkg may know it as /bin/NAME */
    *debian = ask_dpkg(real, name) || (moved && ask_dpkg(real + sizeof usr - 1, name));
    return *debian || ask_rpm(real, name);
}

const char *gt_package_of(const char *path)
{
    static char name[NAME];
    bool debian;
    return find_package(path, name, &debian) ? name : "";
}

/*
 * Debian and Ubuntu build -dbgsym packages, but for the C library and Python: all that is built of
 * a version of Python has its symbols in python3.11-dbg.
 */
const char *gt_debug_package_of(const char *path)
{
    static char debug[NAME + 16];
    char name[NAME];
    bool debian;
    if (!find_package(path, name, &debian))
        return "";
    const char *python = strncmp(name, "lib", 3) == 0 ? name + 3 : name;
    if (!debian)
        snprintf(debug, sizeof debug, "%s-debuginfo", name);
    else if (strcmp(name, "libc6") == 0)
        snprintf(debug, sizeof debug, "libc6-dbg");
    else if (strncmp(python, "python3.", 8) == 0)
        snprintf(debug, sizeof debug, "%.*s-dbg", (int)strcspn(python, "-"), python);
    else
        snprintf(debug, sizeof debug, "%s-dbgsym", name);
    return debug;
}

/* Where they come from ------------------------------------------------------------------------ */

/*
 * By ID in os-release(5). lists: what apt keeps of the archive of -dbgsym packages; suffix: of the
 * codename there.
 */
static const struct distribution {
    const char *id, *lists, *archive, *suffix;
} distributions[] = {
    {"debian", "*debian-debug_dists_*", "debian-debug", "-debug"},
    {"ubuntu", "*ddebs*_dists_*", "ddebs", ""},
};

/* NULL: not among them. codename: such as bookworm. */
static const struct distribution *find_distribution(char codename[NAME])
{
    static const char script[] = ". /etc/os-release && echo \"$ID $VERSION_CODENAME\"";
    char line[NAME];
    gt_ask((const char *const[]){"sh", "-c", script, NULL}, line, sizeof line);
    size_t n = strcspn(line, " ");
    snprintf(codename, NAME, "%s", line[n] ? line + n + 1 : "");
    for (size_t i = 0; i < sizeof distributions / sizeof *distributions; i++) {
        if (strlen(distributions[i].id) == n && strncmp(distributions[i].id, line, n) == 0)
            return &distributions[i];
    }
    return NULL;
}

static bool is_there(const char *pattern)
{
    glob_t files;
    bool found = glob(pattern, 0, NULL, &files) == 0;
    if (found)
        globfree(&files);
    return found;
}

const char *gt_debug_source(void)
{
    static char source[NAME + 128];
    char codename[NAME], lists[64];
    const struct distribution *d = find_distribution(codename);
    if (!d || !*codename)
        return "";
    snprintf(lists, sizeof lists, "/var/lib/apt/lists/%s", d->lists);
    snprintf(source, sizeof source, "%s, suite %s%s", d->archive, codename, d->suffix);
    return is_there(lists) ? "" : source;
}

bool gt_has_debuginfod_urls(void)
{
    return is_there(GT_DEBUGINFOD_FILES);
}

const char *gt_debuginfod_setting(void)
{
    const char *set = getenv("DEBUGINFOD_URLS");
    if (set && *set)
        return "";
    return gt_has_debuginfod_urls() ? GT_DEBUGINFOD_URLS " " : "DEBUGINFOD_URLS=SERVER ";
}
