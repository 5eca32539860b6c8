/* See control.h. */
#include "control.h"

#include "report.h"

#include "encoder/base/libc.h"
#include "encoder/base/sparse.h"
#include "encoder/drain/drain.h"
#include "encoder/file/output.h"
#include "encoder/thread/buffers.h"
#include "preload/process/attach_state.h"
#include "preload/process/process_state.h"
#include "preload/shared/control_page.h"
#include "preload/shared/options.h"
#include "preload/upward.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The lowest descriptor for the page. Not 0 to 2: libraries may print to these in our thread. */
#define HIGH_FD 1000

/* The page without a drain thread. Not zero, so that it stands in the library's data, which
 * /proc/PID/maps shows under the library's name. */
static _Alignas(GT_CONTROL_ALIGN) struct gt_control_page alone GT_SPARSE_DATA = {
    .magic = GT_CONTROL_MAGIC, .version = GT_CONTROL_VERSION, .attend = &gt_drain_unattended};

static struct gt_control_page *page = &alone;

static int make_file(void)
{
    /* 8: MFD_NOEXEC_SEAL: Linux 6.3 and later complain if it is missing, older ones refuse it. */
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = (int)gt_syscall(SYS_memfd_create, GT_CONTROL_FILE, flags | 8);
    if (fd < 0)
        fd = (int)gt_syscall(SYS_memfd_create, GT_CONTROL_FILE, flags);
    int high = fd < 0 ? -1 : (int)gt_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return fd;
    gt_syscall(SYS_close, fd);
    return high;
}

void gt_control_open(void)
{
    int fd = make_file();
    if (fd < 0)
        return;
    void *p = MAP_FAILED;
    if (gt_syscall(SYS_ftruncate, fd, sizeof alone) == 0 && gt_syscall(SYS_fchmod, fd, 0600) == 0 &&
        gt_syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        p = mmap(NULL, sizeof alone, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        gt_syscall(SYS_close, fd);
        return;
    }
    struct gt_control_page *shared = p;
    shared->version = GT_CONTROL_VERSION;
    gt_buffers_sleep_on(&shared->wake);
    atomic_thread_fence(memory_order_release); /* a client that sees the magic sees all fields */
    shared->magic = GT_CONTROL_MAGIC;
    page = shared;
}

void gt_control_open_alone(void)
{
    if (alone.until) /* do not write to a page for nothing */
        alone.until = 0;
    if (alone.taken != alone.asked || alone.answered != alone.asked)
        alone.taken = alone.answered = alone.asked;
    alone.pid = gt_process_is_ours() ? (int32_t)gt_syscall(SYS_getpid) : 0;
    if (gt_attach_is_free() && gt_process_is_ours())
        alone.pid = -alone.pid;
}

/* Whether a client still waits for command number `asked`. */
static bool is_good(struct gt_control_page *p, uint32_t asked)
{
    return p != &alone || (time(NULL) < atomic_load(&p->until) && atomic_load(&p->asked) == asked);
}

static int execute(struct gt_control_page *p, uint32_t asked)
{
    static char path[PATH_MAX] GT_SPARSE; /* a copy: the client may overwrite the page */
    uint32_t command = p->command;
    snprintf(path, sizeof path, "%.*s", (int)sizeof path - 1, p->path);
    *p->text = 0;
    if (!is_good(p, asked))
        return -ETIMEDOUT; /* the client has given up since gt_control_serve looked */
    return gt_upward.execute(command, path, p->text, p == &alone);
}

static void describe(struct gt_control_page *p)
{
    bool stopped = p->command == GT_DRAIN_STOP || p->command == GT_CONTROL_DETACH;
    bool starts = p->command == GT_DRAIN_START || p->command == GT_DRAIN_SAMPLE;
    if (*p->text)
        return;
    if (p->result == 0 && stopped)
        gt_report_describe(p->text);
    else if (p->result == 0 && starts && gt_options.ring_bytes)
        strcpy(p->text, "memory"); /* gt_output_path names an earlier recording's file */
    else
        snprintf(p->text, sizeof p->text, "%s", gt_output_path());
}

void gt_control_serve(void)
{
    struct gt_control_page *p = page;
    uint32_t asked = atomic_load(&p->asked);
    if (asked == atomic_load(&p->answered) || !is_good(p, asked))
        return;
    atomic_store(&p->taken, asked);
    p->result = execute(p, asked);
    describe(p);
    atomic_store(&p->answered, asked);
    if (p != &alone)
        gt_syscall(SYS_futex, &p->answered, FUTEX_WAKE, INT_MAX);
}

void gt_control_after_fork(void)
{
    gt_buffers_sleep_on(NULL);
    if (page != &alone)
        munmap(page, sizeof alone);
    page = &alone;
    gt_control_open_alone();
}
