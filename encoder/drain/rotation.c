/* See rotation.h. */
#include "rotation.h"

#include "encoder/base/arena.h"
#include "encoder/base/libc.h"
#include "encoder/format/format.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The trace; and in Go 1.5's format the file with its names. */
static const char *const suffixes[] = {"", ".elf"};
enum { SUFFIXES = sizeof suffixes / sizeof *suffixes };

/* Identifies a file as the one that was written. */
struct mark {
    dev_t device;
    ino_t inode; /* 0: no file */
    off_t size;
    struct timespec changed;
};

struct entry {
    char path[PATH_MAX];
    struct mark marks[SUFFIXES];
};

static struct {
    struct gt_rotation_config config;
    uint64_t due_ns, due_bytes;
    /* Numbers of files in order of time, over all recordings. */
    uint32_t first, end;  /* the first of this recording; behind the last complete file */
    uint32_t removed;     /* files before this number are removed */
    uint64_t bytes;       /* of this recording's files */
    struct entry *newest; /* the config.keep newest; or, if all are kept, the recording's first */
} rotation;

void gt_rotation_init(const struct gt_rotation_config *config)
{
    rotation.config = *config;
}

bool gt_rotation_is_on(void)
{
    return gt_rotation_is_wanted(&rotation.config);
}

/* When another one is due -------------------------------------------------------------------- */

/*
 * Sets when the next file is due. Its limit of bytes is lower by 1/16: what the end of a
 * generation adds is not known before.
 */
static void expect(uint64_t from_ns, uint64_t from_bytes)
{
    const struct gt_rotation_config *c = &rotation.config;
    rotation.due_ns = c->ns ? from_ns + c->ns : 0;
    rotation.due_bytes = c->bytes ? from_bytes + c->bytes - c->bytes / 16 : UINT64_MAX;
}

void gt_rotation_begin(uint64_t now)
{
    rotation.first = rotation.end;
    rotation.bytes = 0;
    expect(now, 0);
}

uint64_t gt_rotation_due_ns(void)
{
    return rotation.due_ns;
}

bool gt_rotation_is_due(uint64_t now, uint64_t bytes)
{
    return gt_rotation_is_on() &&
           ((rotation.due_ns && now >= rotation.due_ns) || bytes >= rotation.due_bytes);
}

void gt_rotation_next(uint64_t now, uint64_t bytes)
{
    uint64_t due = rotation.due_ns, ns = rotation.config.ns;
    bool by_clock = due && now >= due && now - due < ns;
    expect(by_clock ? due : now, bytes);
}

void gt_rotation_end(void)
{
    rotation.due_ns = 0;
}

/* Which there are ---------------------------------------------------------------------------- */

static struct entry *entry_of(uint32_t number)
{
    return &rotation.newest[rotation.config.keep ? number % rotation.config.keep : 0];
}

static bool look(const char *path, const char *suffix, struct mark *mark)
{
    char name[PATH_MAX + 8];
    struct stat st;
    *mark = (struct mark){.inode = 0};
    snprintf(name, sizeof name, "%s%s", path, suffix);
    if ((*suffix && !gt_v1_global_order(gt_format)) || gt_lstat(name, &st) != 0)
        return false;
    *mark = (struct mark){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
    return true;
}

static bool same(const struct mark *a, const struct mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

void gt_rotation_note(const char *path, uint64_t bytes)
{
    uint32_t keep = rotation.config.keep, number = rotation.end;
    if (!rotation.newest)
        rotation.newest = gt_pages_alloc((keep ? keep : 1) * sizeof *rotation.newest);
    rotation.bytes += bytes;
    rotation.end++;
    if (!rotation.newest || (!keep && number != rotation.first))
        return;
    struct entry *e = entry_of(number);
    strcpy(e->path, path);
    for (int i = 0; i < SUFFIXES; i++)
        look(path, suffixes[i], &e->marks[i]);
}

/*
 * Removes a file and the one beside it. A file that was changed or replaced is not ours any more,
 * and stays.
 */
static void remove_file(const struct entry *e)
{
    for (int i = 0; i < SUFFIXES; i++) {
        char name[PATH_MAX + 8];
        struct mark now;
        snprintf(name, sizeof name, "%s%s", e->path, suffixes[i]);
        if (look(e->path, suffixes[i], &now) && same(&now, &e->marks[i]))
            gt_syscall(SYS_unlinkat, AT_FDCWD, name, 0);
    }
}

void gt_rotation_trim(void)
{
    uint32_t keep = rotation.config.keep;
    for (; keep && rotation.newest && rotation.end - rotation.removed >= keep; rotation.removed++)
        remove_file(entry_of(rotation.removed));
}

struct gt_rotation_files gt_rotation_files(void)
{
    uint32_t removed = rotation.removed > rotation.first ? rotation.removed : rotation.first;
    bool any = rotation.newest && removed < rotation.end;
    return (struct gt_rotation_files){.n = rotation.end - rotation.first,
                                      .removed = removed - rotation.first,
                                      .bytes = rotation.bytes,
                                      .oldest = any ? entry_of(removed)->path : ""};
}

/*
 * In a forked child: forgets the files, which belong to the parent, and does not touch the memory.
 */
void gt_rotation_after_fork(void)
{
    memset(&rotation, 0, sizeof rotation);
}
