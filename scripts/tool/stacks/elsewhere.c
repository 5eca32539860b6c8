/*
 * See elsewhere.h. /proc/locks lists each lock on a file with the process that holds it. Behind it
 * come the processes that wait for it. Which thread of the process has taken the lock is nowhere.
 * So a process that holds such a lock is only followed if it has one thread, which is read as it
 * sleeps: it is not stopped, and need not be.
 */
#include "elsewhere.h"

#include "scripts/tool/alone.h"

#include "encoder/base/glibc.h"
#include "encoder/base/libc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAYS_MOST = 16 }; /* processes on the way to a thread of ours */

/* Locks on files ------------------------------------------------------------------------------ */

/* The type in /proc/locks of the lock that the call waits for; NULL: it waits for none. */
static const char *type_of(const struct gt_call *c)
{
    bool record = c->number == SYS_fcntl && (int)c->argument[1] == F_SETLKW;
    return c->number == SYS_flock ? "FLOCK" : record ? "POSIX" : NULL;
}

static unsigned long inode_of(pid_t tid, int fd)
{
    char name[64], line[256];
    unsigned long inode = 0;
    snprintf(name, sizeof name, "fdinfo/%d", fd);
    FILE *f = gt_open_proc(tid, name);
    while (f && !inode && fgets(line, sizeof line, f))
        sscanf(line, "ino: %lu", &inode);
    if (f)
        fclose(f);
    return inode;
}

/* The process that holds the lock for which a thread of the process waits in this call; 0: none. */
static pid_t file_lock_holder(pid_t process, const struct gt_call *c)
{
    char line[256], type[16];
    const char *wanted = type_of(c);
    unsigned long inode, its = wanted ? inode_of(process, (int)c->argument[0]) : 0;
    pid_t holder = 0, found = 0, pid;
    FILE *f = its ? gt_open_proc(0, "../locks") : NULL;
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *arrow = strstr(line, "->"), *rest = arrow ? arrow + 2 : strchr(line, ':') + 1;
        if (sscanf(rest, "%15s %*s %*s %d %*x:%*x:%lu", type, &pid, &inode) != 3)
            continue;
        if (!arrow)
            holder = pid;
        else if (pid == process && inode == its && strcmp(type, wanted) == 0)
            found = holder;
    }
    if (f)
        fclose(f);
    return found > 0 ? found : 0;
}

/* Other processes ----------------------------------------------------------------------------- */

static pid_t process_of(pid_t tid)
{
    return (pid_t)gt_status_of(tid, "Tgid:");
}

/* The owner of the mutex in shared memory that a thread waits for; 0: it waits for none. */
static pid_t mutex_owner(pid_t tid, const struct gt_call *c)
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
    struct gt_call call = gt_call_of(tid), after;
    pid_t next = mutex_owner(tid, &call);
    if (!next && (next = file_lock_holder(process_of(tid), &call)) && gt_has_threads(next))
        return 0;
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
        const struct gt_wait *w = &other->wait;
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
    struct gt_wait *w = &t->wait;
    bool mutex = w->kind == GT_WAIT_MUTEX && w->owned == GT_OWNER_FOREIGN && !w->timed;
    pid_t tid = mutex ? w->owner : file_lock_holder(s->pid, &t->call);
    w->process = tid ? process_of(tid) : 0;
    if (!w->process)
        return;
    if (w->process == s->pid && s->tasks > 1) { /* its lock through another open file */
        w->within = true;
        find_suspect(s, t);
        return;
    }
    pid_t ours = mutex || !gt_has_threads(tid) ? leads_to(s, tid) : 0;
    if (ours) {
        w->owned = GT_OWNER_THREAD;
        w->owner = ours;
        w->certain = true;
    }
}
