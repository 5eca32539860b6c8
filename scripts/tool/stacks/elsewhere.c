/*
 * See elsewhere.h. /proc/locks lists each lock on a file with the process that took it. Behind it
 * come the processes that wait for it. The lock of flock(2) belongs to the open file, which
 * children inherit. So the process that took the lock holds it only if one of its own descriptors
 * has it. Which thread of the process has taken the lock is nowhere. So a process that holds such a
 * lock is only followed if it has one thread, which is read as it sleeps: it is not stopped, and
 * need not be.
 */
#include "elsewhere.h"

#include "scripts/tool/alone.h"

#include "encoder/read/need.h"
#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAYS_MOST = 16 }; /* processes on the way to a thread of ours */

/* Locks on files ------------------------------------------------------------------------------ */

/* The type in /proc/locks of the lock that the call waits for; NULL: it waits for none. */
static const char *type_of(const struct gt_system_call *c)
{
    bool record = c->number == SYS_fcntl && (int)c->argument[1] == F_SETLKW;
    return c->number == SYS_flock ? "FLOCK" : record ? "POSIX" : NULL;
}

/* A file, as its locks are listed: inodes of several file systems may have the same number. */
struct file {
    unsigned major, minor;
    unsigned long inode; /* 0: not known */
};

/* The holder of a lock on a file, as far as it is known. */
struct holder {
    pid_t process; /* which took it; 0: none is known */
    bool has_it;   /* and has a descriptor of it: a child may be the only one left that has */
    bool stays;    /* until it is released: no timer ends the wait for it */
};

/* What earlier waiters needed, since gt_elsewhere_forget. */
static struct {
    int mount; /* the last one looked up, and its device; 0: none */
    unsigned major, minor;
    struct lock {
        const char *type;
        struct file file;
        struct holder holder; /* for waiters of the process that is looked at */
    } * lock;
    size_t locks;
} before;

void gt_elsewhere_forget(void)
{
    free(before.lock);
    memset(&before, 0, sizeof before);
}

/* The device of the file system that the thread has mounted there. */
static bool find_device(pid_t tid, int mount, struct file *file)
{
    char line[4096];
    int id = -1;
    FILE *f = mount && before.mount == mount ? NULL : gt_open_proc(tid, "mountinfo");
    while (f && id != mount && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%d %*d %u:%u", &id, &before.major, &before.minor) != 3)
            id = -1;
    }
    if (f) {
        fclose(f);
        before.mount = id == mount ? mount : 0;
    }
    file->major = before.major;
    file->minor = before.minor;
    return before.mount == mount;
}

static struct file file_of(pid_t tid, int fd)
{
    char name[64], line[256];
    struct file file = {.inode = 0};
    int mount = -1;
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    FILE *f = gt_open_proc(tid, name);
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "mnt_id: %d", &mount);
        sscanf(line, "ino: %lu", &file.inode);
    }
    if (f)
        fclose(f);
    return mount >= 0 && find_device(tid, mount, &file) ? file : (struct file){.inode = 0};
}

/* Whether a line of /proc/locks, from the type on, is about such a lock. *pid: whose. */
static bool is_about(const char *line, const char *type, const struct file *file, pid_t *pid)
{
    char its[16];
    struct file other;
    return sscanf(line, "%15s %*s %*s %d %x:%x:%lu", its, pid, &other.major, &other.minor,
                  &other.inode) == 5 &&
           strcmp(its, type) == 0 && other.inode == file->inode && other.major == file->major &&
           other.minor == file->minor;
}

/* Whether an open file of the process has the lock: fdinfo lists it as /proc/locks does. */
static bool has_lock(pid_t process, const char *type, const struct file *file)
{
    char path[64], name[300], line[256];
    bool found = false;
    pid_t pid;
    snprintf(path, sizeof path, "/proc/%d/fdinfo", process);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        snprintf(name, sizeof name, "fdinfo/%s", e->d_name);
        FILE *f = *e->d_name != '.' ? gt_open_proc(process, name) : NULL;
        while (f && !found && fgets(line, sizeof line, f)) {
            const char *rest = strncmp(line, "lock:", 5) == 0 ? strchr(line + 5, ':') : NULL;
            found = rest && is_about(rest + 1, type, file, &pid);
        }
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return found;
}

/*
 * Whether a timer may end waits for locks on files: its signal's handler runs, and the call returns
 * EINTR. alarm and setitimer have SIGALRM, and nothing tells whether they run. Timers of
 * timer_create are listed in /proc/PID/timers, each with its signal. The other timers of setitimer
 * do not run while a process sleeps.
 */
static bool has_timer(pid_t process)
{
    char line[256];
    int signal = SIGALRM;
    uint64_t caught = gt_signals_of(process, "SigCgt:");
    bool found = caught >> (signal - 1) & 1;
    FILE *f = gt_open_proc(process, "timers");
    while (f && !found && fgets(line, sizeof line, f)) {
        found = sscanf(line, "signal: %d/", &signal) == 1 && signal > 0 && signal <= 64 &&
                caught >> (signal - 1) & 1;
    }
    if (f)
        fclose(f);
    return found;
}

/* The holder of such a lock on the file. A thread of the process waits for it. */
static struct holder holder_of(pid_t process, const char *type, const struct file *file)
{
    char line[256];
    struct holder h = {.process = 0};
    pid_t taker = 0, pid;
    FILE *f = gt_open_proc(0, "../locks");
    while (f && !h.process && fgets(line, sizeof line, f)) {
        const char *arrow = strstr(line, "->"), *rest = arrow ? arrow + 2 : strchr(line, ':') + 1;
        if (!is_about(rest, type, file, &pid))
            continue;
        if (!arrow)
            taker = pid;
        else if (pid == process && taker > 0)
            h.process = taker;
    }
    if (f)
        fclose(f);
    h.has_it = h.process && has_lock(h.process, type, file);
    h.stays = h.has_it && !has_timer(process);
    return h;
}

/* The holder of the lock that the thread of the process waits for. again: reads all anew. */
static struct holder file_lock_holder(pid_t process, const struct gt_system_call *c, bool again)
{
    const char *type = type_of(c);
    struct file file = {.inode = 0};
    if (type)
        file = file_of(process, (int)c->argument[0]);
    if (!file.inode)
        return (struct holder){.process = 0};
    if (again)
        return holder_of(process, type, &file);
    for (size_t i = 0; i < before.locks; i++) {
        if (before.lock[i].type == type && memcmp(&before.lock[i].file, &file, sizeof file) == 0)
            return before.lock[i].holder;
    }
    struct lock *lock = GT_ADD(before.lock, before.locks);
    *lock = (struct lock){type, file, holder_of(process, type, &file)};
    return lock->holder;
}

/* Other processes ----------------------------------------------------------------------------- */

static pid_t process_of(pid_t tid)
{
    return (pid_t)gt_status_of(tid, "Tgid:");
}

/* The owner of the mutex in shared memory that a thread waits for; 0: it waits for none. */
static pid_t mutex_owner(pid_t tid, const struct gt_system_call *c)
{
    char path[64];
    pthread_mutex_t m;
    int operation = (int)c->argument[1];
    if (c->number != SYS_futex || c->argument[3] || operation & FUTEX_PRIVATE_FLAG ||
        ((operation & FUTEX_CMD_MASK) != FUTEX_WAIT &&
         (operation & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET))
        return 0;
    snprintf(path, sizeof path, "/proc/%d/mem", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool read = pread(fd, &m, sizeof m, (off_t)c->argument[0]) == (ssize_t)sizeof m;
    if (fd >= 0)
        close(fd);
    bool mutex = read && !(gt_glibc_mutex_kind(&m) & ~GT_MUTEX_ALL) &&
                 gt_glibc_mutex_is_shared(&m) && memcmp(&m, &c->argument[2], sizeof(uint32_t)) == 0;
    return mutex ? (pid_t)gt_glibc_mutex_owner(&m) : 0;
}

/* The thread that another process's thread waits for; 0: not known, or it does not stand still. */
static pid_t next_of(pid_t tid)
{
    long sleeps = gt_sleeps_of(tid);
    struct gt_system_call call = gt_call_of(tid), after;
    pid_t next = mutex_owner(tid, &call);
    if (!next) {
        struct holder h = file_lock_holder(process_of(tid), &call, true);
        next = h.stays && !gt_has_threads(h.process) ? h.process : 0;
    }
    after = gt_call_of(tid);
    return gt_call_is_same(&call, &after) && gt_sleeps_of(tid) == sleeps ? next : 0;
}

/* The thread of ours that this thread of another process waits for, through others; 0: none. */
static pid_t leads_to(const struct gt_still *s, pid_t tid)
{
    for (int i = 0; tid && i < WAYS_MOST; i++, tid = next_of(tid)) {
        if (process_of(tid) == s->pid)
            return gt_still_task(s, tid) ? tid : 0;
    }
    return 0;
}

/* All ----------------------------------------------------------------------------------------- */

/* Whether the other thread waits for this one, if the holders of its locks and theirs do not. */
static bool waits_for(const struct gt_still *s, const struct gt_still_thread *other,
                      const struct gt_still_thread *t)
{
    for (size_t i = 0; other && other != t && i < s->tasks; i++) {
        const struct gt_thread_wait *w = &other->wait;
        other = w->certain && w->owned == GT_OWNER_THREAD ? gt_still_task(s, w->owner) : NULL;
    }
    return other == t;
}

/* Names the first thread that waits for a lock which this one holds: it may have the file's lock.
 */
static void find_suspect(const struct gt_still *s, struct gt_still_thread *t)
{
    for (size_t i = 0; i < s->tasks && !t->wait.suspect; i++) {
        const struct gt_still_thread *other = &s->task[i];
        if (other != t && other->wait.kind != GT_WAIT_JOIN && waits_for(s, other, t))
            t->wait.suspect = other->tid;
    }
}

void gt_find_elsewhere(const struct gt_still *s, struct gt_still_thread *t)
{
    struct gt_thread_wait *w = &t->wait;
    struct holder h = {.has_it = true, .stays = true};
    bool mutex = w->kind == GT_WAIT_MUTEX && w->owned == GT_OWNER_FOREIGN && !w->timed;
    if (!mutex)
        h = file_lock_holder(s->pid, &t->call, false);
    pid_t tid = mutex ? w->owner : h.process;
    w->process = tid ? process_of(tid) : 0;
    w->left_to = w->process && !h.has_it;
    if (!w->process || w->left_to)
        return;
    if (w->process == s->pid && s->tasks > 1) { /* its lock through another open file */
        w->within = h.stays;
        find_suspect(s, t);
        return;
    }
    pid_t ours = mutex || !gt_has_threads(tid) ? leads_to(s, tid) : 0;
    if (ours) {
        w->owned = GT_OWNER_THREAD;
        w->owner = ours;
        w->certain = h.stays;
    }
}
