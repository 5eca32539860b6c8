/* See part.h. */
#include "part.h"

#include "encoder/base/path.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool gt_part_option(struct gt_shown_part *part, int option, const char *value)
{
    part->wanted |= option == 'f' || option == 't';
    switch (option) {
    case 'f': part->its.from = gt_read_time("--from", value, &part->its.from_end); return true;
    case 't': part->its.to = gt_read_time("--to", value, &part->its.to_before_end); return true;
    case 'w': part->whole = true; return true;
    default: return false;
    }
}

void gt_part_check(const struct gt_shown_part *part, const char *command)
{
    if (part->wanted && part->whole)
        gt_fail(GT_EXIT_USAGE, "%s: --whole, or --from and --to", command);
}

static struct {
    pid_t maker;
    char directory[PATH_MAX], file[PATH_MAX + 64];
} part;

static void remove_part(void)
{
    char names[PATH_MAX + 80];
    if (getpid() != part.maker)
        return; /* a child that the command forked */
    snprintf(names, sizeof names, "%s.elf", part.file);
    unlink(names);
    unlink(part.file);
    rmdir(part.directory);
}

void gt_part_make(struct gt_rewrite *its)
{
    const char *directory = getenv("TMPDIR");
    snprintf(part.directory, sizeof part.directory, "%s/gotrace-XXXXXX",
             directory && *directory ? directory : "/tmp");
    if (!mkdtemp(part.directory))
        gt_fail(GT_EXIT_FAILED, "%s: %s", part.directory, strerror(errno));
    snprintf(part.file, sizeof part.file, "%s/%.60s", part.directory, gt_path_name(its->input));
    part.maker = getpid();
    atexit(remove_part);
    its->output = part.file;
    gt_rewrite(its);
}
