/*
 * See carry.h. Copies the library into a new directory of ours, which is opened by descriptors from
 * the process's own root, so that no link there leads out of that root.
 */
#include "carry.h"

#include "encoder/base/libc.h"
#include "scripts/tool/alone.h"
#include "scripts/tool/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPY "libgotrace.so"

static const char *const places[] = {"/tmp", "/var/tmp", "/dev/shm", "/run"};

/*
 * Whether the process's user and first group may read the file. The process's other groups are
 * ignored: a process that needs those gets a copy.
 */
static bool may_read(pid_t pid, const char *path)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        setgroups(0, NULL);
        setfsgid((gid_t)gt_status_of(pid, "Gid:"));
        setfsuid((uid_t)gt_status_of(pid, "Uid:"));
        _exit(open(path, O_RDONLY | O_CLOEXEC) < 0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool sees(pid_t pid, const char *library)
{
    char path[PATH_MAX + 32];
    struct stat ours, its;
    snprintf(path, sizeof path, "/proc/%d/root%s", pid, library);
    return stat(library, &ours) == 0 && stat(path, &its) == 0 && ours.st_dev == its.st_dev &&
           ours.st_ino == its.st_ino && may_read(pid, path);
}

static int open_below(int root, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* The process's user has to read it: a copy is no secret. */
static bool copy(int directory, const char *library)
{
    struct stat st;
    int from = open(library, O_RDONLY | O_CLOEXEC);
    int to = openat(directory, COPY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0755);
    bool done = from >= 0 && to >= 0 && fstat(from, &st) == 0 && fchmod(to, 0755) == 0;
    for (off_t n = 0; done && n < st.st_size;)
        done = sendfile(to, from, &n, (size_t)(st.st_size - n)) > 0;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return done;
}

/* Copies the library to a place. false: the place is not writable, or mounted noexec. */
static bool carry_to(struct gt_carried *c, int root, const char *place, const char *library)
{
    struct statvfs fs;
    char name[32];
    int parent = open_below(root, place);
    snprintf(name, sizeof name, "gotrace.%d", getpid());
    if (parent < 0)
        return false;
    bool made = fstatvfs(parent, &fs) == 0 && !(fs.f_flag & (ST_NOEXEC | ST_RDONLY)) &&
                mkdirat(parent, name, 0755) == 0;
    c->directory =
        made ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    c->parent = parent;
    snprintf(c->path, sizeof c->path, "%s/%s/%s", place, name, COPY);
    if (c->directory >= 0 && fchmod(c->directory, 0755) == 0 && copy(c->directory, library))
        return true;
    gt_carry_end(c);
    return false;
}

void gt_carry(struct gt_carried *c, const struct gt_still *still, const char *library)
{
    char path[64];
    c->directory = c->parent = -1;
    snprintf(c->path, sizeof c->path, "%s", library);
    if (sees(still->alive, library))
        return;
    snprintf(path, sizeof path, "/proc/%d/root", still->alive);
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; root >= 0 && i < sizeof places / sizeof *places; i++) {
        if (carry_to(c, root, places[i], library)) {
            close(root);
            return;
        }
    }
    gt_fail(GT_EXIT_FAILED,
            "process %d cannot read libgotrace.so where it is, and there is no place for a copy: "
            "its /tmp, /var/tmp, /dev/shm and /run cannot be written, or are mounted noexec",
            still->pid);
}

void gt_carry_end(struct gt_carried *c)
{
    if (c->directory >= 0) {
        char name[32];
        unlinkat(c->directory, COPY, 0);
        close(c->directory);
        snprintf(name, sizeof name, "gotrace.%d", getpid());
        unlinkat(c->parent, name, AT_REMOVEDIR);
    }
    if (c->parent >= 0)
        close(c->parent);
    c->directory = c->parent = -1;
}
