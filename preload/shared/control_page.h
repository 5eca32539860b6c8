/*
 * Control from outside: `gotrace start|stop|snapshot PID`. (`start --cpu` is GT_DRAIN_SAMPLE.)
 *
 * With a drain thread: the control page is shared memory (memfd_create(2)) in the drain thread's
 * own descriptor table. The command opens the page through /proc/PID/task/TID/fd.
 * - The kernel lets only processes open it that may read the traced process: those of the same user
 *   and root, whatever Yama says.
 * - The command finds the page in any chroot or container, since the page has no name in a file
 *   system or network.
 * - The program cannot notice: it gets no signal, no thread and no descriptor.
 * - Nothing is polled: the drain thread sleeps on a word of the page.
 *
 * Without a drain thread, in a program that never made a thread: the page is a variable of the
 * library. The command finds it by its magic, at the beginning of a page of the library's data, and
 * reads and writes it through /proc/PID/mem. The kernel demands the permissions of a debugger for
 * that. The open file keeps referring to the old memory when the process execs or its PID is used
 * again. The command writes 1 to the first byte of `*attend`, a word that hooks read anyway. The
 * program's thread then reads the page at its next call that may block. A forked child has a copy
 * of the page.
 *
 * A kernel before 5.9 gives the drain thread no descriptor table of its own: only gotrace.h and
 * GOTRACE_SIGNAL work there.
 */
#pragma once

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define GT_CONTROL_THREAD "gotrace"          /* the drain thread's comm */
#define GT_CONTROL_FILE "gotrace-control"    /* the memfd's name */
#define GT_CONTROL_MAGIC 0x6374726c6f676f74u /* "togolrtc" */
#define GT_CONTROL_VERSION 2

/* Commands for the drain thread beside those of enum gt_drain_command: attach.h. `path` is an
 * output pattern. */
enum { GT_CONTROL_ATTACH = 16, GT_CONTROL_DETACH };

/*
 * The control page. An older library refuses a command that it does not know: -EINVAL.
 *
 * Clients take turns by flock(2) on the file, or on /proc/PID/maps. A client writes command and
 * path and increments `asked`. Then it stores 1 to `wake` and wakes one thread that waits there.
 * The answer is complete when `answered` equals `asked`. Both words are futexes.
 */
struct gt_control_page {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t wake, asked, answered;
    uint32_t command;    /* enum gt_drain_command or GT_CONTROL_ATTACH, GT_CONTROL_DETACH */
    int32_t result;      /* 0 or -errno */
    char path[PATH_MAX]; /* of a snapshot (empty: as GOTRACE_OUTPUT); or GT_DRAIN_SAMPLE's rate */
    char text[PATH_MAX + 512]; /* the result for the user, a line without its end */

    /*
     * Without a drain thread the client cannot know when the program will read the page, and the
     * program cannot know whether the client still waits then. So a command is valid until `until`,
     * in seconds since 1970. The client moves `until` on as long as it waits, and sets it to 0 when
     * it stops waiting.
     *
     * The program sets `taken` to `asked`, then reads `until`. The client writes `until`, then
     * reads `taken`. So at least one of them sees the other's write. The next client sets `until`
     * to 0, waits until the command in `taken` is answered, and sets `until` last.
     */
    _Atomic int64_t until;
    _Atomic uint32_t taken;
    int32_t pid; /* the process's own PID; 0: nothing is traced here; negative: the process can be
                  * attached to, see gt_attach_is_free */
    _Atomic uint32_t *attend; /* gt_drain_unattended */
};

/* The layout is fixed: a gotrace command that was built from another version of the source finds
 * the page by magic and version. The futexes must be 4 bytes long. */
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
