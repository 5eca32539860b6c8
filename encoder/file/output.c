/* See output.h. System calls are made directly: the wrappers of libc are interposed. */
#include "output.h"

#include "encoder/base/arena.h"
#include "encoder/base/clock.h"
#include "encoder/base/libc.h"
#include "encoder/base/path.h"
#include "encoder/base/sparse.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define STAGE (256u << 10)
#define FD_FROM                                                                                  \
    1000 /* the least number of our descriptor: out of the way of small limits and small numbers \
          */

struct file {
    char asked[PATH_MAX]; /* the path asked for */
    char path[PATH_MAX];  /* `asked`, or another path if that is taken */
    int fd;
    dev_t dev;
    ino_t ino;
    bool regular;
    bool unnamed; /* until the first commit: see publish */
    bool stale;   /* contents of an earlier run, until we write something */
    int error;
    uint64_t written, committed;
};

/* file: the one that is written. The other entry: the one to be opened next. */
static struct file files[2] GT_SPARSE_DATA = {{.fd = -1}, {.fd = -1}};
static struct file *file = &files[0];

static struct {
    char *stage;
    size_t staged;
    uint64_t limit, spared_since;
    bool limited;
    bool (*in_vain)(void);
    _Atomic uint64_t stands_since; /* a write waits since then; 0: none waits */
} out;

static struct file *other(void)
{
    return &files[file == &files[0]];
}

static bool fd_is_ours(void)
{
    struct stat st;
    return file->fd >= 0 && gt_fstat(file->fd, &st) == 0 && st.st_dev == file->dev &&
           st.st_ino == file->ino;
}

/* A high number is less likely to meet a program that counts on "the next free one". */
static int move_up(int fd)
{
    int high = (int)gt_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, FD_FROM);
    if (high < 0)
        return fd;
    gt_syscall(SYS_close, fd);
    return high;
}

static int open_at(const char *path, int flags)
{
    int fd = (int)gt_syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC | flags, 0600);
    return fd < 0 ? -errno : move_up(fd);
}

/* Whether we may overwrite the file that exists already; see output.h. */
static int check_found(int fd)
{
    struct stat st;
    if (gt_fstat(fd, &st) != 0)
        return -errno;
    bool placed = S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode); /* by anyone who may write there */
    if (placed && st.st_uid != (uid_t)gt_syscall(SYS_geteuid))
        return -EPERM;
    return S_ISREG(st.st_mode) && st.st_nlink != 1 ? -EMLINK : 0;
}

/*
 * Opens an existing file. A FIFO without a reader is an error, not a wait for ever. A file that is
 * not regular stays non-blocking: see write_all.
 */
static int open_found(const char *path)
{
    static const struct timespec ms10 = {0, 10000000};
    enum { TRIES = 100 };
    int fd = -ENXIO;
    for (int i = 0; i < TRIES && fd == -ENXIO; i++) {
        if (i)
            gt_syscall(SYS_nanosleep, &ms10, NULL);
        fd = open_at(path, O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    }
    int error = fd < 0 ? fd : check_found(fd);
    if (error && fd >= 0)
        gt_syscall(SYS_close, fd);
    return error ? error : fd;
}

static int create(void)
{
    return open_at(file->path, O_CREAT | O_EXCL | O_NOFOLLOW);
}

/*
 * Creates a file that gets its name when there is something to read in it. Where the file system
 * cannot do that, the file has its name at once, and is empty for a moment.
 */
static int create_unnamed(void)
{
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%.*s", (int)(gt_path_name(file->path) - file->path),
             file->path);
    long fd = gt_syscall(SYS_openat, AT_FDCWD, directory, O_RDWR | O_CLOEXEC | O_TMPFILE, 0600);
    file->unnamed = fd >= 0;
    return file->unnamed ? move_up((int)fd) : create();
}

static int open_path(bool fresh)
{
    struct stat st;
    bool found = gt_lstat(file->path, &st) == 0;
    if (found && fresh)
        return -EEXIST;
    int fd = found ? -EEXIST : create_unnamed();
    return fd == -EEXIST ? open_found(file->path) : fd;
}

/* Whether another process has left its trace there in this run: a file that is not our last one. */
static bool is_spared(void)
{
    struct stat st;
    return out.spared_since && gt_fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size &&
           (st.st_dev != file->dev || st.st_ino != file->ino) &&
           (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec >=
               out.spared_since;
}

/*
 * Whether the file is another process's, which may have the number of this one in another PID
 * namespace: it is writing its trace there, or has. If not, locks the file for us.
 */
static bool taken(void)
{
    bool locked = gt_syscall(SYS_flock, file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return locked || is_spared();
}

/*
 * Appends our process number to the path. In a container other processes may have it too: the n-th
 * try has another name.
 */
static void choose_own(int n)
{
    char number[48];
    snprintf(number, sizeof number, n > 1 ? ".%ld.%d" : ".%ld", gt_syscall(SYS_getpid), n);
    snprintf(file->path, sizeof file->path, "%.*s%s", (int)(PATH_MAX - sizeof number), file->asked,
             number);
}

enum { OTHERS_MAX = 1000 };

static void open_own_while_taken(void)
{
    for (int n = 1; n < OTHERS_MAX && file->fd >= 0 && taken(); n++) {
        gt_syscall(SYS_close, file->fd);
        choose_own(n);
        file->fd = open_path(false);
    }
}

static int know_file(void)
{
    struct stat st;
    if (gt_fstat(file->fd, &st) != 0)
        return -errno;
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    file->regular = S_ISREG(st.st_mode);
    return 0;
}

const char *gt_output_path(void)
{
    return file->path;
}

void gt_output_identify(uint64_t *device, uint64_t *inode)
{
    bool known = file->fd >= 0 && file->regular;
    *device = known ? file->dev : 0;
    *inode = known ? file->ino : 0;
}

int gt_output_descriptor(void)
{
    return fd_is_ours() ? file->fd : -1;
}

bool gt_output_reserve(void)
{
    if (!out.stage)
        out.stage = gt_pages_alloc(STAGE);
    return out.stage;
}

static int open_file(const char *path, bool fresh)
{
    snprintf(file->asked, sizeof file->asked, "%s", path);
    snprintf(file->path, sizeof file->path, "%s", path);
    file->error = 0;
    file->unnamed = file->stale = false;
    file->written = file->committed = 0;
    if (!gt_output_reserve())
        return file->error = -ENOMEM;
    file->fd = open_path(fresh);
    open_own_while_taken();
    if (file->fd < 0)
        return file->error = file->fd;
    file->stale = !file->unnamed;
    return file->error = know_file();
}

int gt_output_prepare(const char *path)
{
    file = other();
    gt_output_close();
    int error = open_file(path, false);
    file = other();
    return error;
}

int gt_output_open(const char *path, bool fresh)
{
    bool prepared = other()->fd >= 0 && strcmp(other()->asked, path) == 0;
    out.limited = false;
    out.staged = 0;
    if (!prepared)
        return open_file(path, fresh);
    file = other();
    return 0;
}

/*
 * Opens the file again after the program closed or replaced our descriptor, which is not ours to
 * close.
 */
static int reopen(void)
{
    file->fd = open_found(file->path);
    if (file->fd >= 0 && fd_is_ours()) {
        gt_syscall(SYS_lseek, file->fd, file->written, SEEK_SET);
        return 0;
    }
    if (file->fd >= 0)
        gt_syscall(SYS_close, file->fd);
    file->fd = -1;
    return -EBADF;
}

void gt_output_spare(uint64_t since_ns)
{
    out.spared_since = since_ns;
}

void gt_output_set_limit(uint64_t bytes)
{
    out.limit = bytes;
}

bool gt_output_limited(void)
{
    return out.limited;
}

void gt_output_set_patience(bool (*in_vain)(void))
{
    out.in_vain = in_vain;
}

uint64_t gt_output_stands_ns(void)
{
    uint64_t since = atomic_load(&out.stands_since), now = gt_clock_monotonic_raw();
    return since && since < now ? now - since : 0;
}

/*
 * Waits for a reader that stands still. The first naps are short: it may be only a little slower
 * than us.
 */
static bool wait_for_reader(struct timespec *nap)
{
    enum { LONGEST_NS = 10000000 };
    if (out.in_vain && out.in_vain())
        return false;
    gt_syscall(SYS_nanosleep, nap, NULL);
    nap->tv_nsec = nap->tv_nsec * 2 < LONGEST_NS ? nap->tv_nsec * 2 : LONGEST_NS;
    return true;
}

/* Returns the number of bytes written, or -errno. */
static long write_some(const char *p, size_t size)
{
    struct timespec nap = {0, 50000};
    for (;;) {
        if (!fd_is_ours() && reopen() != 0)
            return -EBADF;
        if (file->stale)
            gt_syscall(SYS_ftruncate, file->fd, 0); /* a device or a FIFO has nothing to truncate */
        file->stale = false;
        long n = gt_syscall(SYS_write, file->fd, p, size);
        int error = n < 0 ? errno : n == 0 ? EIO : 0;
        if (error == EAGAIN && !wait_for_reader(&nap))
            return -ETIMEDOUT;
        if (error != EAGAIN && error != EINTR)
            return error ? -error : n;
    }
}

static int write_all(const char *p, size_t size)
{
    long n = 0;
    out.limited = out.limit && size > out.limit - file->written;
    if (out.limited)
        return -EFBIG;
    while (size && n >= 0) {
        atomic_store(&out.stands_since, gt_clock_monotonic_raw());
        n = write_some(p, size);
        size_t done = n > 0 ? (size_t)n : 0;
        p += done;
        size -= done;
        file->written += done;
    }
    atomic_store(&out.stands_since, 0);
    return n < 0 ? (int)n : 0;
}

static int flush(void)
{
    if (!file->error && out.staged)
        file->error = write_all(out.stage, out.staged);
    out.staged = 0;
    return file->error;
}

void gt_output_fail(int error)
{
    file->error = file->error ? file->error : error;
    out.staged = 0;
}

int gt_output_write(const void *data, size_t size)
{
    if (!file->error && size > STAGE - out.staged)
        flush();
    if (file->error)
        return file->error;
    if (size > STAGE)
        return file->error = write_all(data, size);
    memcpy(out.stage + out.staged, data, size);
    out.staged += size;
    return 0;
}

/* Gives the unnamed file its name. 0 or an errno. */
static int link_to(const char *path)
{
    char self[64];
    /* This is faster, but before Linux 6.10 only root may do it. */
    if (gt_syscall(SYS_linkat, file->fd, "", AT_FDCWD, path, AT_EMPTY_PATH) == 0)
        return 0;
    snprintf(self, sizeof self, "/proc/thread-self/fd/%d", file->fd);
    return gt_syscall(SYS_linkat, AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0
                                                                                          : errno;
}

/* If the unnamed file cannot get a name (no /proc): copies all of it to a file that has one. */
static int copy_to_path(void)
{
    int unnamed = file->fd, fd = create(), error;
    uint64_t whole = file->written;
    if (fd < 0)
        return fd;
    file->fd = fd;
    file->written = 0;
    error = taken() ? -EEXIST : know_file();
    while (!error && file->written < whole) {
        long n = gt_syscall(SYS_pread64, unnamed, out.stage, STAGE, file->written);
        error = n <= 0 ? -EIO : write_all(out.stage, (size_t)n);
    }
    gt_syscall(SYS_close, unnamed);
    return error;
}

/*
 * Gives the file its name at the first commit. Another process may have taken the name meanwhile.
 */
static int publish(void)
{
    int why = link_to(file->path);
    for (int n = 1; n < OTHERS_MAX && why == EEXIST; n++) {
        choose_own(n);
        why = link_to(file->path);
    }
    file->unnamed = false;
    return why ? copy_to_path() : 0;
}

int gt_output_commit(void)
{
    if (flush() == 0 && file->unnamed)
        file->error = publish();
    if (!file->error)
        file->committed = file->written;
    return file->error;
}

int gt_output_rewind(void)
{
    if (!file->regular || !fd_is_ours())
        return -ESPIPE;
    if (gt_syscall(SYS_ftruncate, file->fd, 0) != 0 ||
        gt_syscall(SYS_lseek, file->fd, 0, SEEK_SET) != 0)
        return -errno;
    file->written = file->committed = out.staged = 0;
    out.limited = false;
    return file->error = 0;
}

/*
 * Removes a file without a commit: no reader could read it, or its contents are an earlier run's.
 */
static void remove_empty(void)
{
    struct stat st;
    if (file->regular && !file->committed && gt_lstat(file->path, &st) == 0 &&
        st.st_dev == file->dev && st.st_ino == file->ino)
        gt_syscall(SYS_unlinkat, AT_FDCWD, file->path, 0);
}

void gt_output_close(void)
{
    if (fd_is_ours()) {
        if (file->stale || file->written != file->committed)
            gt_syscall(SYS_ftruncate, file->fd, (off_t)file->committed);
        remove_empty();
        gt_syscall(SYS_close, file->fd);
    }
    file->fd = -1;
}

static int write_to(int fd, const char *p, size_t size)
{
    while (size) {
        long n = gt_syscall(SYS_write, fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

int gt_output_beside(const char *suffix, const void *data, size_t size)
{
    char path[PATH_MAX + 32], fresh[PATH_MAX + 32];
    if (!file->regular || file->error)
        return 0;
    snprintf(path, sizeof path, "%s%s", file->path, suffix);
    snprintf(fresh, sizeof fresh, "%s%s.new", file->path, suffix);
    gt_syscall(SYS_unlinkat, AT_FDCWD, fresh, 0);
    int fd = open_at(fresh, O_CREAT | O_EXCL | O_NOFOLLOW);
    if (fd < 0)
        return fd;
    int error = write_to(fd, data, size);
    gt_syscall(SYS_close, fd);
    if (!error && gt_syscall(SYS_renameat2, AT_FDCWD, fresh, AT_FDCWD, path, 0) != 0)
        error = -errno;
    if (error)
        gt_syscall(SYS_unlinkat, AT_FDCWD, fresh, 0);
    return error;
}

uint64_t gt_output_size(void)
{
    return file->committed;
}

uint64_t gt_output_uncommitted(void)
{
    return file->written + out.staged - file->committed;
}

void gt_output_after_fork(void)
{
    for (int i = 0; i < 2; i++) {
        file = &files[i];
        if (fd_is_ours())
            gt_syscall(SYS_close, file->fd);
        file->fd = -1;
        file->ino = 0;
    }
    out.staged = 0;
    atomic_store(&out.stands_since, 0);
}
