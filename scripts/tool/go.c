/* See go.h. */
#include "go.h"

#include "ask.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The N of a go1.N program's version; 0: not known. */
static int minor_of(const char *go)
{
    char line[256];
    int minor = 0;
    if (gt_ask((const char *const[]){go, "version", NULL}, line, sizeof line) == 0)
        sscanf(line, "go version go1.%d", &minor);
    return minor;
}

void gt_go_consider(struct gt_go *s, const char *go)
{
    int minor = access(go, X_OK) == 0 ? minor_of(go) : 0;
    size_t n = strlen(s->seen);
    if (!minor)
        return;
    if (minor >= s->least && minor <= s->most && minor > s->minor) {
        snprintf(s->best, sizeof s->best, "%s", go);
        s->minor = minor;
    }
    snprintf(s->seen + n, sizeof s->seen - n, "%s%s (1.%d)", n ? ", " : "", go, minor);
}

static void consider_path(struct gt_go *s)
{
    char go[PATH_MAX];
    const char *dirs = getenv("PATH");
    for (const char *d = dirs ? dirs : "", *next; d; d = next) {
        size_t n = strcspn(d, ":");
        next = d[n] ? d + n + 1 : NULL;
        snprintf(go, sizeof go, "%.*s/go", (int)n, d);
        if (n)
            gt_go_consider(s, go);
    }
}

void gt_go_find(struct gt_go *s)
{
    static const char *const places[] = {"/usr/local/go/bin/go", "/usr/lib/go-1.*/bin/go",
                                         "/usr/lib/go/bin/go", "~/sdk/go1.*/bin/go"};
    consider_path(s);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        glob_t found = {0};
        if (glob(places[i], GLOB_TILDE, NULL, &found) == 0) {
            for (size_t k = 0; k < found.gl_pathc; k++)
                gt_go_consider(s, found.gl_pathv[k]);
        }
        globfree(&found);
    }
}
