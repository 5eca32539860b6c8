/*
 * Asks a program that has a single thread, through its memory: see preload/shared/control_page.h.
 * The command follows no address that it reads there, with one exception: it writes 1 to the
 * address that the page's `attend` gives.
 */
#pragma once

#include "encoder/drain/drain.h"
#include "preload/shared/control_page.h"

#include <stdio.h>
#include <sys/types.h>

/* How long, in seconds, a program may take to answer: symbolizing a large program is slow. */
enum { GT_PATIENCE_S = 60 };

/* How long a single-threaded program may take to begin: it has to make a call that may block. */
enum { GT_ALONE_BEGIN_S = 5 };

/* Opens a file of /proc/PID for reading; pid 0: of this process. NULL, with errno: no such file. */
FILE *gt_open_proc(pid_t pid, const char *name);

/* Reads the `stat` of a thread into text; returns the part behind the name, from " S " on; NULL: no
 * such thread. */
const char *gt_stat_of(pid_t pid, char *text, size_t size);

/* A number in a file of /proc/sys; `missing` if there is none. */
long gt_sysctl(const char *path, long missing);

/* The last number in a line of /proc/PID/status, such as "Seccomp:"; 0: no such line. */
long gt_status_of(pid_t pid, const char *line_name);

/* The signals in such a line, such as "SigCgt:", as bits; all: no such line. */
uint64_t gt_signals_of(pid_t pid, const char *line_name);

/* Whether the process has more than one thread. */
bool gt_has_threads(pid_t pid);

/* What has stopped the process: a signal ('T'), a debugger ('t'), or neither (0). */
char gt_stopped_how(pid_t pid);

/* Whether the process's cgroup is frozen, by version 1 of cgroups or 2. */
bool gt_is_frozen(pid_t pid);

/* Whether the process has filters of seccomp(2) that this command does not have. */
bool gt_is_confined(pid_t pid);

/* Whether the process started with more privileges than its caller's, by set-user-ID or the like.
 */
bool gt_is_secure(pid_t pid);

/*
 * Looks at the page in the process's library. Returns
 *
 * 0                the process is traced
 * -ENXIO           the process is not traced
 * -ENOTCONN        neither it nor its parent is traced. The parent was attached once, so this
 *                  process can be attached.
 * -EPROTO, -ENOENT the library is of another version
 * another -errno   the process cannot be looked at
 */
int gt_alone_look(pid_t pid);

/*
 * Gives the program a command and waits until it is done; *answer is a copy of the page then.
 * Returns 0, or
 *
 * -EACCES, -EPERM  the kernel does not let us debug the program
 * -ENOENT          the program has no page: no library, or an older one
 * -EPROTO          the library is of another version
 * -ENXIO           the library does not trace this process
 * -ENOTCONN        neither it nor its parent, which was attached, is traced any more
 * -EOPNOTSUPP      seccomp(2) may kill the program for what the command needs
 * -ETIMEDOUT       the program did not begin the command, and will not
 * -EBUSY           the program began the command and does not finish it
 * -ESRCH           the program ended, or became another program
 * -EAGAIN          the program has other threads now; nothing was done
 */
int gt_alone_ask(pid_t pid, enum gt_drain_command command, const char *path,
                 struct gt_control_page *answer);
