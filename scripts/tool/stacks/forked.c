/*
 * Locks that were held when the process forked. Their owners have ids of threads of the parent. One
 * of those threads, the one that forked, became the first thread of this process, and can unlock
 * its locks. No thread can unlock the others' locks.
 *
 * Nothing records which thread forked. But libc's data of the first thread is where that thread has
 * it in the parent. At the address where libc keeps the id of our first thread, the parent has the
 * id of the thread that forked, as long as that thread lives. That thread must be older than this
 * process: else another thread may have taken its place, or the parent is another process.
 */
#include "still.h"

#include "encoder/base/glibc.h"
#include "scripts/tool/alone.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct stat_line {
    unsigned flags;
    unsigned long long start; /* ticks */
};

static bool read_stat(pid_t tid, struct stat_line *stat)
{
    char text[1024];
    const char *line = gt_stat_of(tid, text, sizeof text);
    return line && sscanf(line,
                          " %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                          "%*d %llu",
                          &stat->flags, &stat->start) == 2;
}

bool gt_is_forked(pid_t pid)
{
    struct stat_line stat;
    return read_stat(pid, &stat) && stat.flags & GT_FORKED;
}

/* Whether the thread is older. Within one tick ids count up, unless they start again. */
static bool is_older(pid_t tid, pid_t than)
{
    enum { NEAR = 10000 };
    struct stat_line its, other;
    return read_stat(tid, &its) && read_stat(than, &other) &&
           (its.start < other.start ||
            (its.start == other.start && tid < than && than - tid < NEAR));
}

static bool was_before(pid_t tid, pid_t parent, pid_t child)
{
    return tid > 0 && gt_status_of(tid, "Tgid:") == parent && is_older(tid, child);
}

/* Words read of libc's data of a thread, from the thread pointer on. */
enum { WORDS = GT_TCB_HAS_ID / sizeof(uint32_t) };

static bool read_thread(pid_t pid, uint64_t at, uint32_t words[WORDS])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : pread(fd, words, WORDS * sizeof *words, (off_t)at);
    if (fd >= 0)
        close(fd);
    return size == WORDS * sizeof *words;
}

/* The parent's thread that forked and became our first thread; 0: not known. */
static pid_t forker_of(const struct gt_still *s, pid_t parent)
{
    uint32_t ours[WORDS], theirs[WORDS];
    const struct gt_still_thread *first = gt_still_task(s, s->pid);
    uint64_t at = first && first->own == s->pid ? gt_registers_thread(&first->registers) : 0;
    if (!at || parent <= 0 || !read_thread(s->pid, at, ours) || !read_thread(parent, at, theirs))
        return 0;
    for (int i = 0; i < WORDS; i++) {
        if (ours[i] == (uint32_t)s->pid)
            return was_before((pid_t)theirs[i], parent, s->pid) ? (pid_t)theirs[i] : 0;
    }
    return 0;
}

enum gt_owner gt_forked_owner(const struct gt_still *s, pid_t own)
{
    if (!s->forked)
        return GT_OWNER_ENDED;
    pid_t parent = s->core ? 0 : (pid_t)gt_status_of(s->pid, "PPid:");
    pid_t forker = forker_of(s, parent);
    if (forker && forker == own)
        return GT_OWNER_THREAD;
    return forker && was_before(own, parent, s->pid) ? GT_OWNER_LEFT : GT_OWNER_FORKED;
}
