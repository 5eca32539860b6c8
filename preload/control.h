/*
 * Control from outside: `gotrace start|stop|snapshot PID`. (`start --cpu` is GT_DRAIN_SAMPLE.)
 *
 * With a drain thread. It keeps a page of shared memory (memfd_create(2)) in its descriptor table,
 * which is its own. The command opens that through /proc/PID/task/TID/fd: the kernel lets only
 * those do so who may read the process, the same user and root, whatever Yama says; it finds the
 * page in any chroot or container, since no name of any file system or network is involved; and the
 * program cannot notice: it gets no signal, no thread, no descriptor. The drain thread sleeps on a
 * word of the page, so nothing is polled.
 *
 * Without one, in a program that never made a thread, the page is a variable of the library. The
 * command finds it by its magic, at the beginning of a page of the library's data, and reads and
 * writes it through /proc/PID/mem: for that the kernel asks what it asks of a debugger, and what is
 * opened stays the memory that it was when the process execs or its id is used again. The program's
 * thread looks there at its next call that may block, if the command has written 1 to `*attend`,
 * which is what it looks at anyway. A forked child has a copy of its own.
 *
 * A kernel before 5.9 gives the drain thread no table of its own: there only gotrace.h and
 * GOTRACE_SIGNAL remain.
 */
#ifndef GT_CONTROL_H
#define GT_CONTROL_H

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define GT_CONTROL_THREAD "gotrace"          /* its comm */
#define GT_CONTROL_FILE "gotrace-control"    /* the memfd's name */
#define GT_CONTROL_MAGIC 0x6374726c6f676f74u /* "togolrtc" */
#define GT_CONTROL_VERSION 2

/* For our thread: what attach.h has of these names; the path is an output's pattern. */
enum { GT_CONTROL_ATTACH = 16, GT_CONTROL_DETACH };

/*
 * A command that a library does not know, for it is older, it refuses: -EINVAL.
 *
 * Clients take turns by flock(2) on the file, or on /proc/PID/maps. One writes command and path,
 * counts `asked` up, and kicks: stores 1 to wake and wakes one who waits there. The answer is there
 * when `answered` equals `asked`. Both words are futexes.
 */
struct gt_control_page {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t wake, asked, answered;
    uint32_t command;    /* enum gt_drain_command, or one of the two below */
    int32_t result;      /* 0 or -errno */
    char path[PATH_MAX]; /* of a snapshot; empty: where GOTRACE_OUTPUT says; or GT_DRAIN_SAMPLE's */
    char text[PATH_MAX + 512]; /* what has happened, a line without its end */

    /*
     * Without a drain thread: nobody knows when the program will look, and whether the client still
     * waits then. So a command is good until `until`, in seconds since 1970, which its client moves
     * on as long as it waits, and sets to 0 when it gives up. The program sets `taken` to `asked`,
     * then reads `until`; the client writes `until`, then reads `taken`: one of them sees the
     * other. The next client sets it to 0, waits until `taken` is answered, and makes the command
     * good as the last thing.
     */
    _Atomic int64_t until;
    _Atomic uint32_t taken;
    int32_t pid; /* of whom this is, as it is told; 0: nothing is traced here; negative: it can be
                  * attached to: gt_attach_is_free */
    _Atomic uint32_t *attend; /* gt_drain_unattended */
};

/* What a command finds by its magic and version, built from another day's source; futexes too. */
#define GT_CONTROL_AT(field, offset)                                  \
    _Static_assert(offsetof(struct gt_control_page, field) == offset, \
                   "the page has changed: GT_CONTROL_VERSION")
GT_CONTROL_AT(version, 8);
GT_CONTROL_AT(wake, 12);
GT_CONTROL_AT(asked, 16);
GT_CONTROL_AT(answered, 20);
GT_CONTROL_AT(command, 24);
GT_CONTROL_AT(result, 28);
GT_CONTROL_AT(path, 32);
GT_CONTROL_AT(text, 32 + PATH_MAX);
GT_CONTROL_AT(until, 32 + 2 * PATH_MAX + 512);
GT_CONTROL_AT(taken, 32 + 2 * PATH_MAX + 520);
GT_CONTROL_AT(pid, 32 + 2 * PATH_MAX + 524);
GT_CONTROL_AT(attend, 32 + 2 * PATH_MAX + 528);
_Static_assert(sizeof(_Atomic uint32_t) == 4 && ATOMIC_INT_LOCK_FREE == 2 &&
                   ATOMIC_LLONG_LOCK_FREE == 2,
               "words that two processes change need no lock");

enum { GT_CONTROL_ALIGN = 4096 }; /* of the variable; the magic is its first member */

/* The drain thread, with a descriptor table of its own: lays the page out. */
void gt_control_open(void);

/* The drain thread was woken, or the only thread attends: does what the page asks for. */
void gt_control_serve(void);

/* From here on the only thread attends; a forked child: its page is a copy, or its parent's. */
void gt_control_open_alone(void);
void gt_control_after_fork(void);

#endif
