/* See live.h. */
#include "live.h"

#include "drain_config.h"
#include "ring.h"

#include "encoder/base/era.h"
#include "encoder/base/hash.h"
#include "encoder/base/libc.h"
#include "encoder/base/log.h"
#include "encoder/base/path.h"
#include "encoder/base/sparse.h"
#include "encoder/file/output.h"
#include "encoder/thread/buffers.h"
#include "encoder/thread/stacks.h"
#include "encoder/thread/strings.h"
#include "encoder/thread/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/*
 * The most memory in a box. TABLES, for stacks and strings: some eras of their greatest share
 * (renewal.c). BEYOND, for buffers beyond the limit: a thread may have two of them as a generation
 * ends.
 */
enum { TABLES = 256 << 20, BEYOND = 256 << 20 };

static char path_of_box[PATH_MAX] GT_SPARSE; /* "": no box */

static struct gt_live *live(void)
{
    return (struct gt_live *)((char *)gt_box + GT_BOX_PAGE);
}

uint64_t gt_live_layout(uint64_t names)
{
    static const size_t sizes[] = {
        sizeof(struct gt_box),         sizeof(struct gt_live),          sizeof(struct gt_buf),
        sizeof(struct gt_stack),       sizeof(struct gt_string),        sizeof(struct gt_era),
        sizeof(struct gt_kept),        sizeof(struct gt_taken_sample),  GT_BUF_BYTES,
        offsetof(struct gt_buf, data), offsetof(struct gt_era, stacks),
    };
    uint64_t hash = names;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        hash = gt_hash_mix(hash, sizes[i]);
    return hash;
}

/* Its file ----------------------------------------------------------------------------------- */

/*
 * Opens and locks the file. Returns a descriptor that holds the lock, or -errno; -EEXIST: it
 * exists.
 */
static int open_locked(const char *path, int flags)
{
    struct stat st;
    int fd =
        (int)gt_syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd < 0)
        return -errno;
    int error = gt_fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EPERM;
    if (!error && gt_syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) != 0)
        error = -errno;
    if (error)
        gt_syscall(SYS_close, fd);
    return error ? error : fd;
}

/* Renames a file, but never replaces another one. 0 or -errno. */
static int move(const char *from, const char *to)
{
    enum { NOREPLACE = 1 };
    return gt_syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, NOREPLACE) == 0 ? 0 : -errno;
}

/* Renames a trace, and the ELF file beside it that one of the formats has. */
static void move_trace(const char *trace, const char *number)
{
    char beside[PATH_MAX + 64], to[sizeof beside];
    snprintf(to, sizeof to, "%s%s", trace, number);
    move(trace, to);
    snprintf(beside, sizeof beside, "%s" GT_V1_ELF_SUFFIX, trace);
    snprintf(to, sizeof to, "%s%s" GT_V1_ELF_SUFFIX, trace, number);
    move(beside, to);
}

/*
 * "t.out.live" of process 12 and "t.out" become "t.out.12.live" and "t.out.12". If an earlier
 * process has left files with that number, a count follows it.
 */
static int move_both(const char *box, const char *trace, unsigned long long pid)
{
    enum { OTHERS_MAX = 1000 };
    char number[48], box_to[PATH_MAX + 64];
    int error = -EEXIST, length = (int)(strlen(box) - (sizeof GT_LIVE_SUFFIX - 1));
    for (int n = 1; n < OTHERS_MAX && error == -EEXIST; n++) {
        snprintf(number, sizeof number, n > 1 ? ".%llu.%d" : ".%llu", pid, n);
        snprintf(box_to, sizeof box_to, "%.*s%s" GT_LIVE_SUFFIX, length, box, number);
        error = move(box, box_to);
    }
    if (!error && trace)
        move_trace(trace, number);
    if (!error)
        gt_log_note("process %llu did not end well, and has left %s: gotrace recover", pid, box_to);
    return error;
}

static bool is_that_file(const struct gt_live_whole *whole)
{
    struct stat st;
    return memchr(whole->path, 0, sizeof whole->path) && gt_lstat(whole->path, &st) == 0 &&
           st.st_dev == whole->device && st.st_ino == whole->inode;
}

/*
 * The trace that belongs to the box: of several files the one that was written last. Another
 * user's box must not have files renamed. NULL: there was no trace yet, or it is gone.
 */
static const char *trace_of(int fd)
{
    static struct gt_live_whole both[2] GT_SPARSE;
    struct stat st;
    long n = gt_syscall(SYS_pread64, fd, both, sizeof both,
                        GT_BOX_PAGE + offsetof(struct gt_live, whole));
    const struct gt_live_whole *whole = &both[both[1].gen > both[0].gen];
    bool ours = gt_fstat(fd, &st) == 0 && st.st_uid == (uid_t)gt_syscall(SYS_geteuid);
    return n == sizeof both && ours && is_that_file(whole) ? whole->path : NULL;
}

static int set_aside(const char *box)
{
    uint64_t pid = 0;
    int fd = open_locked(box, 0);
    if (fd < 0)
        return fd;
    gt_syscall(SYS_pread64, fd, &pid, sizeof pid, GT_BOX_PAGE + offsetof(struct gt_live, pid));
    int error = move_both(box, trace_of(fd), pid);
    gt_syscall(SYS_close, fd);
    return error;
}

/*
 * Names the box: beside the trace or in the directory; numbered: with the number of this process.
 */
static bool name_box(const char *trace, const char *directory, bool numbered)
{
    char number[16] = "";
    if (numbered)
        snprintf(number, sizeof number, ".%ld", gt_syscall(SYS_getpid));
    int n = snprintf(path_of_box, sizeof path_of_box, "%s%s%s%s" GT_LIVE_SUFFIX, directory,
                     *directory ? "/" : "", *directory ? gt_path_name(trace) : trace, number);
    return n < (int)sizeof path_of_box;
}

static int create(void)
{
    return open_locked(path_of_box, O_CREAT | O_EXCL);
}

/* Creates a box. A box of another process that runs stays, and this one gets another name. */
static int create_somewhere(const char *trace, const char *directory)
{
    if (!name_box(trace, directory, false))
        return -ENAMETOOLONG;
    int fd = create();
    if (fd != -EEXIST)
        return fd;
    int error = set_aside(path_of_box);
    if (error && error != -EWOULDBLOCK)
        return error;
    if (error && !name_box(trace, directory, true))
        return -ENAMETOOLONG;
    return create();
}

/* What it says ------------------------------------------------------------------------------- */

static void note_whole(uint32_t gen, const char *path)
{
    struct gt_live_whole *whole = &live()->whole[gen & 1];
    atomic_store(&whole->gen, 0);
    whole->bytes = path ? 0 : gt_output_size();
    strcpy(whole->path, path ? path : gt_output_path());
    gt_output_identify(&whole->device, &whole->inode);
    atomic_store(&whole->gen, gen);
}

void gt_live_open(const struct gt_drain_config *config, size_t memory, uint32_t past)
{
    int fd = create_somewhere(config->file.path, config->memory.live);
    int error = fd < 0 ? fd
                       : gt_box_open(fd, gt_live_layout(config->memory.leaves), TABLES,
                                     memory + BEYOND, config->memory.ring_bytes);
    if (error) {
        if (fd >= 0)
            gt_syscall(SYS_unlinkat, AT_FDCWD, path_of_box, 0);
        gt_log_note("%s: %s; if the program is killed, its last second is lost", path_of_box,
                    gt_libc_error(-error));
        *path_of_box = 0;
        return;
    }
    struct gt_live *l = live();
    l->pid = (uint64_t)gt_syscall(SYS_getpid);
    strcpy(l->format, gt_format->name);
    l->sched = config->cpu.sched;
    l->origin = gt_origin_here();
    gt_setup_here(l->setup);
    l->hz = gt_clock_units(1000000000);
    note_whole(past, config->file.path);
    gt_era_begin(); /* new entries are in the box */
}

void gt_live_begin(uint32_t gen, const struct gt_clock_snapshot *snapshot)
{
    if (!gt_box_is_open())
        return;
    struct gt_live_begun *begun = &live()->begun[gen & 1];
    atomic_store(&begun->gen, 0);
    begun->snapshot = *snapshot;
    begun->from = atomic_load(&gt_gen.from);
    begun->procs = atomic_load(&gt_gen.procs);
    atomic_store(&begun->gen, gen);
}

void gt_live_commit(uint32_t gen, const char *path)
{
    if (!gt_box_is_open())
        return;
    note_whole(gen, path);
    atomic_store(&live()->hz, gt_clock_hz());
}

void gt_live_remove(void)
{
    if (!*path_of_box)
        return;
    gt_syscall(SYS_unlinkat, AT_FDCWD, path_of_box, 0);
    *path_of_box = 0;
}

void gt_live_after_fork(void)
{
    if (!gt_box_is_open())
        return;
    gt_buffers_forget();
    gt_ring_leave();
    gt_box_leave(gt_era_keep_all);
    gt_strings_catch_up();
    gt_stacks_catch_up();
    *path_of_box = 0;
}
