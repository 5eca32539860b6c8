/*
 * Asking a program that has one thread: see preload/control.h. Nothing of what is read in its
 * memory is followed, but that 1 is written there where it says.
 */
#ifndef GT_ALONE_H
#define GT_ALONE_H

#include "encoder/drain.h"
#include "preload/control.h"

#include <stdio.h>
#include <sys/types.h>

/* How long, in seconds, a program may take to answer: symbolizing a large one takes its time. */
enum { GT_PATIENCE_S = 60 };

/* How long one without threads may take to begin: it has to make a call that may block. */
enum { GT_ALONE_BEGIN_S = 5 };

/* A file of /proc/PID to read, of our own for a pid of 0; NULL, with errno: there is none. */
FILE *gt_open_proc(pid_t pid, const char *name);

/* What /proc has as the `stat` of a thread, behind the name, from " S " on, into text; NULL: there
 * is none. */
const char *gt_stat_of(pid_t pid, char *text, size_t size);

/* The last number of a line of /proc/PID/status, such as "Seccomp:"; 0: there is none. */
long gt_status_of(pid_t pid, const char *line_name);

/* Whether the process has more than one thread. */
bool gt_has_threads(pid_t pid);

/* Whether it is under filters of seccomp(2) that we are not under. */
bool gt_is_confined(pid_t pid);

/*
 * What the page in its library says: 0: it is traced; -ENXIO: it is not; -ENOTCONN: nor its parent
 * any more, which was attached, but it can be; -EPROTO, -ENOENT: it is of another version; another
 * -errno: it cannot be looked at.
 */
int gt_alone_look(pid_t pid);

/*
 * Waits until it is done; *answer is then what the page says. 0 or
 * -EACCES, -EPERM  the kernel would not let us debug it
 * -ENOENT          it has no page: no library, or an older one
 * -EPROTO          another version of the library
 * -ENXIO           that does not trace this process
 * -ENOTCONN        nor its parent any more, which was attached
 * -EOPNOTSUPP      seccomp(2) may kill the program for what a command needs
 * -ETIMEDOUT       it did not begin, and will not
 * -EBUSY           it has begun and does not come to an end
 * -ESRCH           it ended, or became another program
 * -EAGAIN          it has other threads now; nothing was done
 */
int gt_alone_ask(pid_t pid, enum gt_drain_command command, const char *path,
                 struct gt_control_page *answer);

#endif
