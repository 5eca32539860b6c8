/* See clean.h. */
#include "clean.h"

#include "boxed.h"
#include "recover.h"

#include "encoder/base/sort.h"
#include "encoder/read/need.h"
#include "scripts/tool/parent.h"
#include "scripts/tool/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum outcome { OTHER, RUNS, FAILED, EMPTY, RECOVERED, OUTCOMES };

static struct {
    const char *directory;
    char **name; /* files that may be boxes, by their names */
    size_t n;
    uint32_t count[OUTCOMES];
} clean;

/* Input and output of the process that recovers one box, in shared memory. */
struct job {
    char path[PATH_MAX];
    struct stat file;
    bool says, has_events;
};

GT_ORDER_POINTERS(by_name, char, strcmp(x, y))

/* Lists all names before anything in the directory changes. */
static void list(DIR *dir)
{
    for (struct dirent *e; (e = readdir(dir));) {
        if (!gt_boxed_trace_length(e->d_name))
            continue;
        *GT_ADD(clean.name, clean.n) = gt_need(strdup(e->d_name));
    }
    if (clean.n)
        qsort(clean.name, clean.n, sizeof *clean.name, by_name);
}

static void recover(const void *arg)
{
    struct job *job = (struct job *)(uintptr_t)arg; /* shared memory */
    job->has_events = gt_recover_orphan(job->path, &job->file, job->says);
}

/* Removes the box, if its name still leads to the file. */
static void remove_box(int dir, const char *name, const struct stat *its)
{
    struct stat now;
    if (fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == its->st_ino &&
        now.st_dev == its->st_dev)
        unlinkat(dir, name, 0);
}

/*
 * A process holds its box's lock as long as it lives. We hold the lock meanwhile, so that no other
 * command recovers the box or renames it.
 */
static enum outcome handle_locked(int dir, const char *name, int fd, struct job *job)
{
    uint64_t pid;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? RUNS : FAILED;
    int n = snprintf(job->path, sizeof job->path, "%s/%s", clean.directory, name);
    if (n >= (int)sizeof job->path || !gt_boxed_is(job->path, &pid))
        return OTHER;
    job->has_events = false;
    if (!gt_parent_aside(recover, job))
        return FAILED;
    remove_box(dir, name, &job->file);
    return job->has_events ? RECOVERED : EMPTY;
}

/* Handles one name, with care: other users may have put anything into the directory. */
static enum outcome handle(int dir, const char *name, struct job *job)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    bool is_file = fd >= 0 && fstat(fd, &job->file) == 0 && S_ISREG(job->file.st_mode);
    enum outcome outcome = is_file ? handle_locked(dir, name, fd, job) : OTHER;
    if (outcome == OTHER || outcome == FAILED)
        gt_say("%s/%s: %s; it stays", clean.directory, name,
               outcome == OTHER ? "not what a recording with GOTRACE_LIVE leaves"
                                : "not recovered");
    if (fd >= 0)
        close(fd);
    return outcome;
}

static void report(void)
{
    const uint32_t *n = clean.count;
    gt_say("%s: %u recovered, %u removed that had no events, %u of running processes left, "
           "%u not recovered",
           clean.directory, n[RECOVERED], n[EMPTY], n[RUNS], n[FAILED] + n[OTHER]);
}

bool gt_recover_clean(const char *directory, bool says)
{
    enum { PROTECTION = PROT_READ | PROT_WRITE, KIND = MAP_SHARED | MAP_ANONYMOUS };
    DIR *dir = opendir(directory);
    struct job *job = mmap(NULL, sizeof *job, PROTECTION, KIND, -1, 0);
    clean.directory = directory;
    if (!dir || job == MAP_FAILED)
        gt_fail(GT_EXIT_FAILED, "%s: %s", directory, strerror(errno));
    job->says = says;
    list(dir);
    for (size_t i = 0; i < clean.n; i++)
        clean.count[handle(dirfd(dir), clean.name[i], job)]++;
    closedir(dir);
    if (says)
        report();
    return !clean.count[FAILED];
}
