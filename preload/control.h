/*
 * Control from outside: `gotrace start|stop|snapshot PID`.
 *
 * The drain thread keeps a page of shared memory (memfd_create(2)) in its descriptor table, which
 * is its own. The command opens that through /proc/PID/task/TID/fd: the kernel lets only those do
 * so who may read the process, the same user and root, whatever Yama says; it finds the page in any
 * chroot or container, since no name of any file system or network is involved; and the program
 * cannot notice: it gets no signal, no thread, no descriptor. The drain thread sleeps on a word of
 * the page, so nothing is polled.
 *
 * A program that never made a thread has no drain thread, and a kernel before 5.9 none with a table
 * of its own: there only gotrace.h and GOTRACE_SIGNAL remain.
 */
#ifndef GT_CONTROL_H
#define GT_CONTROL_H

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#define GT_CONTROL_THREAD "gotrace"          /* its comm */
#define GT_CONTROL_FILE "gotrace-control"    /* the memfd's name */
#define GT_CONTROL_MAGIC 0x6374726c6f676f74u /* "togolrtc" */
#define GT_CONTROL_VERSION 1

/*
 * Clients take turns by flock(2) on the file. One writes command and path, counts `asked` up, and
 * kicks: stores 1 to wake and wakes one who waits there. The answer is there when `answered` equals
 * `asked`. Both words are futexes.
 */
struct gt_control_page {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t wake, asked, answered;
    uint32_t command;          /* enum gt_drain_command */
    int32_t result;            /* 0 or -errno */
    char path[PATH_MAX];       /* of a snapshot; empty: where GOTRACE_OUTPUT says */
    char text[PATH_MAX + 512]; /* what has happened, a line without its end */
};

/* The drain thread, with a descriptor table of its own: lays the page out. */
void gt_control_open(void);

/* The drain thread was woken: does what the page asks for. */
void gt_control_serve(void);

/* In a forked child: the page is the parent's. */
void gt_control_after_fork(void);

#endif
